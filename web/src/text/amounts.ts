// Money, tokens and sizes. Unknown is never 0: whoever reads a number knows that it was reported.

export const NOT_REPORTED = "not reported";
const MONEY = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** `$0.31`, `<$0.01`; `$0.00` only when somebody said 0. */
export function dollars(usd: number): string {
  if (usd > 0 && usd < 0.01) return "<$0.01";
  return `$${MONEY.format(usd)}`;
}

/** `980`, `51.3k`, `1.2M`. */
export function count(value: number): string {
  if (value < 1_000) return String(value);
  if (value < 999_950) return `${(value / 1_000).toFixed(1)}k`;
  return `${(value / 1_000_000).toFixed(1)}M`;
}

/** `23 bytes`, `32 KiB`, `1.5 MiB`. */
export function bytes(value: number): string {
  if (value < 1_024) return `${value} bytes`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let size = value / 1_024;
  let unit = 0;
  while (size >= 1_024 && unit < units.length - 1) {
    size /= 1_024;
    unit += 1;
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** `1 run`, `2 runs`. */
export function counted(number: number, noun: string, plural: string = `${noun}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}

/** What came from a provider's cache, for the title of a number of tokens, which is without it. */
export function cached(usage: { tokensCacheRead: number | null } | null): string | undefined {
  return usage?.tokensCacheRead ? `and ${count(usage.tokensCacheRead)} from a cache` : undefined;
}
