# The work of one attempt: sh worker.sh TOKEN ENDING
# It takes one of the lane's slots for as long as it lives (the system lets go of the lock, however
# it ends) and writes one line into a journal that no part of the service knows: what, by whom, with
# which slot, and when, in seconds since the machine's start.
here=${0%/*}
slot=over
number=1
while [ "$number" -le "$(cat "$here/cap")" ]; do
  exec 9>"$here/slots/$number"
  if flock -n 9; then slot=$number; break; fi
  number=$((number + 1))
done
read -r up _ </proc/uptime
echo "$1 ${SUBAGENTS_ATTEMPT:-none} $slot $up" >>"$here/journal"
case $2 in
  long) sleep 2 9>&- ;;
  *) sleep 0.4 9>&- ;;
esac
echo "result of $1 ends"
case $2 in
  exit) exit 3 ;;
  retry) [ "${SUBAGENTS_ATTEMPT_NUMBER:-9}" -ge 2 ] || exit 1 ;;
esac
