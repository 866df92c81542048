// What stands in the filter field, as a question to the daemon: `state:failed agent:codex words`.

import type { RunsQuery } from "../api/types";

const NAMES: Record<string, keyof RunsQuery> = {
  state: "state",
  outcome: "outcome",
  phase: "phase",
  agent: "agentId",
  model: "model",
  tag: "tag",
  label: "label",
  since: "since",
  until: "until",
  directory: "directory",
  requester: "requester",
  plan: "plan",
  tree: "tree",
};

/** As texts only: they come from a field and stand in an address. */
type Filter = { [name in keyof RunsQuery]?: string };

export const FILTER_NAMES = Object.keys(NAMES);

/** The parameters of `GET /v1/runs`; what has no known name is text that label or task contain.
 *
 * The same name twice means either of both for words (`state`, `outcome`) and all for tags.
 */
export function asked(filter: string): Filter {
  const found: Filter = {};
  const words: string[] = [];
  for (const [, name, quoted, plain] of filter.matchAll(/(?:([a-z]+):)?(?:"([^"]*)"|(\S+))/g)) {
    const text = quoted ?? plain ?? "";
    const parameter = name === undefined ? undefined : NAMES[name];
    // As it is read on the page, `needs you`, or as a shell has it.
    const value = parameter === "state" ? text.replaceAll(/[ -]/g, "_") : text;
    if (parameter === undefined) words.push(name === undefined ? value : `${name}:${value}`);
    else found[parameter] = found[parameter] === undefined ? value : `${found[parameter]},${value}`;
  }
  if (words.length > 0) found.q = words.join(" ");
  return found;
}
