import type { ComponentProps } from "react";
import { Link } from "wouter";
import { runAt } from "./routes";
import { Said } from "./said";

type Named = { runId: string; label: string };

/** A run by its label. */
export function RunLink({ run, ...others }: { run: Named } & Pick<ComponentProps<"a">, "id" | "className" | "title" | "tabIndex">) {
  return (
    <Link {...others} href={runAt(run.runId)}>
      <Said text={run.label} />
    </Link>
  );
}
