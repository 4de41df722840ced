// Where a message is written. Enter sends it, Shift+Enter is a new line, and Enter that ends a
// composition of an input method is neither.
import { LoaderCircle, SendHorizontal, Square } from "lucide-react";
import { type FormEvent, type KeyboardEvent, type ReactNode, type Ref, useImperativeHandle, useRef } from "react";
import { useTranslation } from "react-i18next";
import { isComposing } from "../ui/ime";

export type ComposerHandle = { focus: () => void };

type Props = {
  text: string;
  onText: (text: string) => void;
  onSend: () => void;
  onStop: () => void;
  /** A turn is under way. */
  running: boolean;
  /** A message is on its way, or the turn is being stopped. */
  busy: boolean;
  disabled: boolean;
  /** What the message is sent with. */
  children: ReactNode;
  handle: Ref<ComposerHandle>;
};

export function Composer({ text, onText, onSend, onStop, running, busy, disabled, children, handle }: Props) {
  const { t } = useTranslation();
  const field = useRef<HTMLTextAreaElement>(null);
  useImperativeHandle(handle, () => ({ focus: () => field.current?.focus() }), []);
  const ready = text.trim() !== "" && !running && !busy && !disabled;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (ready) onSend();
  };
  const pressed = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    event.preventDefault();
    if (ready) onSend();
  };
  return (
    <form
      onSubmit={submit}
      className="mx-auto w-full max-w-3xl rounded-xl border border-edge bg-surface focus-within:outline-2 focus-within:outline-accent"
    >
      <textarea
        ref={field}
        rows={2}
        className="composer block w-full resize-none bg-transparent px-3.5 pt-2.5 pb-1 outline-none"
        aria-label={t("chat.message")}
        placeholder={t("chat.placeholder")}
        value={text}
        onChange={(event) => onText(event.target.value)}
        onKeyDown={pressed}
        autoComplete="off"
      />
      <div className="flex items-center justify-between gap-2 px-2 pb-2">
        <div className="flex min-w-0 items-center gap-1.5">{children}</div>
        {running ? (
          <button type="button" className="btn ml-auto" onClick={onStop} disabled={busy} aria-busy={busy}>
            <Square size={13} aria-hidden />
            {t("chat.stop")}
          </button>
        ) : (
          <button type="submit" className="btn btn-primary ml-auto" disabled={!ready} aria-busy={busy}>
            {busy ? <LoaderCircle size={15} className="spin" aria-hidden /> : <SendHorizontal size={15} aria-hidden />}
            {t("chat.send")}
          </button>
        )}
      </div>
    </form>
  );
}
