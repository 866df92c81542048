import { prefer, preferences } from "../live/preferences";
import { useStore } from "../live/store";
import { Dialog } from "./dialog";
import { PAGES } from "./routes";

const KEYS: readonly (readonly [string, readonly (readonly [string, string])[]])[] = [
  ["Anywhere", [
    ["Ctrl K", "find anything, start a task (>)"],
    ["?", "these keys"],
    ["c", "new run"],
    ["q", "next that needs you"],
    ["a", "answer a question, on this page"],
    ["u", "back"],
    ["z", "undo, or stop what is about to be done"],
    ["T", "absolute times"],
    ["\\", "light or dark"],
    ["Esc", "leave a field, close a dialog"],
  ]],
  ["In a list", [
    ["j k", "next, previous row"],
    ["o ↵", "open"],
    ["Space", "peek"],
    ["y", "copy its id"],
    ["v", "choose a row"],
    ["V", "choose all that fit"],
    ["x", "mark as read"],
    ["r", "retry"],
    ["⌫", "cancel"],
    ["/", "filter"],
    ["h", "hide ended"],
    [".", "show what is new"],
  ]],
  ["On a question", [
    ["1 – 9", "choose an option"],
    ["a", "answer in own words"],
    ["↵", "send what is chosen"],
  ]],
  ["On a run", [
    ["s", "steer"],
    ["i", "interrupt its turn"],
    ["p", "pause, resume"],
    ["r", "retry"],
    ["n", "continue"],
    ["⌫", "cancel"],
    ["f", "follow the transcript"],
    ["/", "search the transcript"],
  ]],
  ["Go to", PAGES.map((page) => [`g ${page.key}`, page.name] as const)],
];

export function KeyMap({ onClose }: { onClose: () => void }) {
  const { keys } = useStore(preferences);
  return (
    <Dialog title="Keys" onClose={onClose} className="keymap">
      <label className="check">
        <input type="checkbox" checked={keys} onChange={(event) => prefer({ keys: event.target.checked })} />
        keys are on (off while a field has the focus)
      </label>
      <div className="keygroups">
        {KEYS.map(([title, group]) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {group.map(([key, what]) => (
                <div key={key}>
                  <dt>
                    <kbd>{key}</kbd>
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
