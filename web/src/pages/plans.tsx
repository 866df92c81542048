import { Link } from "wouter";
import { usePlans } from "../api/queries";
import { WordChip } from "../components/chip";
import { Heading } from "../components/heading";
import { planAt } from "../components/routes";
import { Said } from "../components/said";
import { Answered, Command, Empty } from "../components/states";
import { Ago } from "../components/when";
import { counted } from "../text/amounts";

export default function PlansPage() {
  const plans = usePlans();
  return (
    <>
      <Heading title="Plans" note={plans.data && counted(plans.data.total, "plan")} />
      <Answered query={plans}>
        {(found) =>
          found.plans.length === 0 ? (
            <div className="box">
              <Empty title="No plans yet">
                <p>
                  Several runs that wait for each other, stored as a whole: <Link href="/new">here</Link>, or from a shell:
                </p>
                <Command text="subagents plan run plan.json" />
              </Empty>
            </div>
          ) : (
            <ul className="box lines">
              {found.plans.map((plan) => (
                <li key={plan.planId} className="line need">
                  <WordChip word={plan.status} />
                  <span className="name">
                    <Link href={planAt(plan.planId)} className="label">
                      <Said text={plan.name ?? plan.planId} />
                    </Link>
                    <span className="note">{counted(plan.steps, "run")}</span>
                  </span>
                  <span className="why">
                    {Object.entries(plan.states)
                      .map(([word, number]) => `${number} ${word}`)
                      .join(" · ")}
                    {plan.retried > 0 && ` · ${plan.retried} retried`}
                  </span>
                  <span className="age num">
                    <Ago at={plan.createdAt} />
                  </span>
                  <span className="note num">{plan.endedAt === null ? "" : <>ended <Ago at={plan.endedAt} /></>}</span>
                </li>
              ))}
            </ul>
          )
        }
      </Answered>
    </>
  );
}
