import { announcement, dismiss, toasts } from "../live/toasts";
import { useStore } from "../live/store";
import { useKeys } from "../live/keys";
import { pressNewest } from "../live/toasts";

export function Toasts() {
  const shown = useStore(toasts);
  const said = useStore(announcement);
  useKeys({ z: pressNewest });
  const newest = shown.findLast((each) => each.action !== null);
  return (
    <>
      <div role="status" className="visually-hidden">
        {said}
      </div>
      <div className="toasts">
        {shown.map((toast) => (
          <div key={toast.id} className={`toast ${toast.kind}`}>
            <div>
              {toast.text}
              {toast.detail !== null && <small>{toast.detail}</small>}
            </div>
            {toast.action !== null && (
              <button
                type="button"
                onClick={() => {
                  dismiss(toast.id);
                  toast.action?.run();
                }}
              >
                {toast.action.word} {toast === newest && <kbd>z</kbd>}
              </button>
            )}
            <button type="button" aria-label="close this note" onClick={() => dismiss(toast.id)}>×</button>
          </div>
        ))}
      </div>
    </>
  );
}
