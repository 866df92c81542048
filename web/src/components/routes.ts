// Addresses of pages; below the path that the daemon serves the page at.
type Listed = { path: string; name: string; key: string; isClosed?: true };

/** What is closed to viewers is about the installation, or about all sessions. */
export const PAGES: readonly Listed[] = [
  { path: "/", name: "Now", key: "n" },
  { path: "/runs", name: "Runs", key: "r" },
  { path: "/plans", name: "Plans", key: "p" },
  { path: "/schedules", name: "Schedules", key: "d" },
  { path: "/sessions", name: "Sessions", key: "s" },
  { path: "/inbox", name: "Inbox", key: "i" },
  { path: "/agents", name: "Agents", key: "a", isClosed: true },
  { path: "/cost", name: "Cost", key: "c", isClosed: true },
  { path: "/alerts", name: "Alerts", key: "l" },
  { path: "/system", name: "System", key: "y", isClosed: true },
];

export const runAt = (id: string, tab = "") => `/runs/${encodeURIComponent(id)}${tab && `/${tab}`}`;
export const compareAt = (a: string, b: string) => `/compare?${new URLSearchParams({ a, b })}`;
export const treeAt = (id: string) => `/trees/${encodeURIComponent(id)}`;
export const planAt = (id: string) => `/plans/${encodeURIComponent(id)}`;
export const sessionAt = (key: string) => `/sessions/${encodeURIComponent(key)}`;
export const runsAt = (q: string) => `/runs?${new URLSearchParams({ q })}`;
/** Where the transcripts are searched for some words, each as it is. */
export const searchAt = (words: string) => `/search?${new URLSearchParams({ grep: words.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&") })}`;
