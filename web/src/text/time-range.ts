// When runs of a list were spawned, as it stands in the address: `1h`, `today`, or two times with a `/` between.

export const RANGES: Readonly<Record<string, string>> = {
  "": "any time",
  "1h": "last hour",
  today: "today",
  yesterday: "yesterday",
  "7d": "last 7 days",
};

/** What `since` and `until` of a list are; days are those of this browser's clock. */
export function boundsOf(range: string, now: Date): { since?: string; until?: string } {
  if (range === "today") return { since: midnight(now, 0) };
  if (range === "yesterday") return { since: midnight(now, -1), until: midnight(now, 0) };
  const [since = "", until = ""] = range.split("/");
  return { ...(since === "" ? {} : { since }), ...(until === "" ? {} : { until }) };
}

function midnight(now: Date, days: number): string {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + days).toISOString();
}

/** A time of an address as `datetime-local` has it, and back; "" = none. */
export function toField(time: string): string {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? "" : new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function fromField(text: string): string {
  return text === "" ? "" : new Date(text).toISOString();
}
