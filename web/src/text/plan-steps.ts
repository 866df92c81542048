// A plan before it is sent: what would start when, and what is wrong with it.

export type Step = { label: string; after: string[]; agent: string | null; task: string };
export type Checked = { layers: Step[][]; problems: string[] };

/** The steps of a plan file or body, in layers of those that can start together. */
export function checkedPlan(specs: readonly Record<string, unknown>[]): Checked {
  const problems: string[] = [];
  const steps = specs.map((spec, at): Step => {
    if (typeof spec["task"] !== "string" || spec["task"] === "") problems.push(`step ${at + 1} has no task`);
    const after = [spec["dependsOn"] ?? [], spec["chainAfter"] ?? []].flat().map(String);
    return {
      label: String(spec["label"] ?? `step ${at + 1}`),
      after,
      agent: typeof spec["agentId"] === "string" ? spec["agentId"] : null,
      task: String(spec["task"] ?? ""),
    };
  });
  const labels = new Set(steps.map((each) => each.label));
  if (labels.size < steps.length) problems.push("two steps have the same label");
  // A name that no step has may be a run that is there already.
  const own = (step: Step) => step.after.filter((each) => labels.has(each));
  const layers: Step[][] = [];
  const done = new Set<string>();
  let left = steps;
  while (left.length > 0) {
    const ready = left.filter((step) => own(step).every((each) => done.has(each)));
    if (ready.length === 0) {
      problems.push(`these wait for each other: ${left.map((each) => each.label).join(", ")}`);
      break;
    }
    layers.push(ready);
    for (const each of ready) done.add(each.label);
    left = left.filter((step) => !ready.includes(step));
  }
  return { layers, problems };
}
