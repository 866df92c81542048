// Times in words. All take milliseconds, or the daemon's ISO text through `ms`.

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// Made once: making one takes longer than all that a row of a list needs besides.
const DAY_OF_YEAR = new Intl.DateTimeFormat("en", { day: "numeric", month: "short" });
const WHOLE = new Intl.DateTimeFormat("en-GB", {
  ...{ day: "numeric", month: "short", year: "numeric" },
  ...{ hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" },
});

/** An ISO time of the daemon as milliseconds; null stays null. */
export function ms(at: string | null | undefined): number | null {
  return at ? Date.parse(at) : null;
}

/** `now`, `9 s ago`, `4 min ago`, `2 h ago`, `3 d ago`. */
export function ago(at: number, now: number): string {
  const age = now - at;
  if (age < SECOND) return "now";
  return `${rounded(age)} ago`;
}

/** What lies ahead: `13:16, in 20 min`. */
export function ahead(at: number, now: number): string {
  return at <= now ? `${clock(at)}, now` : `${clock(at)}, in ${rounded(at - now)}`;
}

/** A length of time: `0.2 s`, `4 m 07 s`, `2 h 10 m`, `3 d 2 h`. */
export function span(length: number): string {
  if (length < 10 * SECOND) return `${(Math.max(length, 0) / SECOND).toFixed(1)} s`;
  if (length < MINUTE) return `${Math.floor(length / SECOND)} s`;
  if (length < HOUR) {
    return `${Math.floor(length / MINUTE)} m ${two(Math.floor((length % MINUTE) / SECOND))} s`;
  }
  if (length < DAY) return `${Math.floor(length / HOUR)} h ${two(Math.floor((length % HOUR) / MINUTE))} m`;
  return `${Math.floor(length / DAY)} d ${Math.floor((length % DAY) / HOUR)} h`;
}

/** `13:16`, or with the day when that is another one than today's. */
export function clock(at: number, today: number = Date.now()): string {
  const date = new Date(at);
  const time = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (date.toDateString() === new Date(today).toDateString()) return time;
  return `${DAY_OF_YEAR.format(date)}, ${time}`;
}

/** `12:51:53`. */
export function clockSeconds(at: number): string {
  const date = new Date(at);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** With day and zone: `22 Nov 2026, 12:51:53 GMT+1`. */
export function absolute(at: number): string {
  return WHOLE.format(at);
}

function rounded(length: number): string {
  if (length < MINUTE) return `${Math.floor(length / SECOND)} s`;
  if (length < HOUR) return `${Math.floor(length / MINUTE)} min`;
  if (length < DAY) return `${Math.floor(length / HOUR)} h`;
  return `${Math.floor(length / DAY)} d`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
