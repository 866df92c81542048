# The shim at its path of 0.1.0: a daemon of that version that goes on running while the package is
# upgraded starts workers by this path until it is restarted. To be removed in 0.4.0.
exec /bin/sh "${0%/*}/process/shim.sh" "$@"
