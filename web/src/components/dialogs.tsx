import { Store, useStore } from "../live/store";
import { KeyMap } from "./keymap";
import { Palette } from "./palette";

const open = new Store<"keys" | "palette" | null>(null);

export function openDialog(name: "keys" | "palette"): void {
  open.set(name);
}

export function Dialogs() {
  const shown = useStore(open);
  const close = () => open.set(null);
  if (shown === "keys") return <KeyMap onClose={close} />;
  if (shown === "palette") return <Palette onClose={close} />;
  return null;
}
