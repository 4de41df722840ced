// A dialog with a title, a body that scrolls and a foot that does not. Full screen on phones.
import { Dialog } from "@base-ui/react/dialog";
import { X } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { Confirm } from "./confirm";
import { UnsavedContext } from "./unsaved";

type Props = {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
  foot?: ReactNode;
  /** `side` is a drawer at the right edge. */
  shape?: "middle" | "side";
  wide?: boolean;
  /** A click beside it does not close it: something was typed. */
  steady?: boolean;
};

const SHAPES = {
  middle:
    "sm:inset-auto sm:top-1/2 sm:left-1/2 sm:max-h-[min(90dvh,54rem)] sm:w-[calc(100vw-2rem)] sm:-translate-x-1/2 sm:-translate-y-1/2 sm:rounded-xl sm:border",
  side: "sm:left-auto sm:w-[min(44rem,92vw)] sm:border-l",
};

export function Modal({ title, open, onClose, children, foot, shape = "middle", wide = false, steady = false }: Props) {
  const { t } = useTranslation();
  const [unsaved, setUnsaved] = useState(false);
  const [asking, setAsking] = useState(false);
  const close = () => (unsaved ? setAsking(true) : onClose());
  return (
    <Dialog.Root open={open} onOpenChange={(next) => !next && close()} disablePointerDismissal={steady}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup
          initialFocus={firstField}
          className={`fixed inset-0 z-50 flex flex-col overflow-hidden border-line bg-surface shadow-2xl outline-none ${SHAPES[shape]} ${shape === "middle" ? (wide ? "sm:max-w-3xl" : "sm:max-w-xl") : ""}`}
        >
          <div className="flex items-center justify-between gap-3 border-b border-line px-4 py-2.5">
            <Dialog.Title className="min-w-0 truncate text-lg font-semibold">{title}</Dialog.Title>
            <Dialog.Close className="btn btn-quiet btn-icon" aria-label={t("common.close")}>
              <X size={18} aria-hidden />
            </Dialog.Close>
          </div>
          <div className="min-h-0 flex-1 overflow-y-auto px-4 py-4">
            <UnsavedContext value={setUnsaved}>{children}</UnsavedContext>
          </div>
          {foot && (
            <div className="flex flex-wrap items-center justify-end gap-2 border-t border-line px-4 py-3">{foot}</div>
          )}
          <Confirm
            title={t("form.discardTitle")}
            open={asking}
            onCancel={() => setAsking(false)}
            onConfirm={onClose}
            confirm={t("form.discardConfirm")}
            cancel={t("form.keepEditing")}
          >
            {t("form.discardText")}
          </Confirm>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** The field that a dialog is about, rather than its close button; on a touch screen a field would
 *  bring up the keyboard. */
function firstField(interaction: string): HTMLElement | true {
  if (interaction === "touch") return true;
  return document.querySelector<HTMLElement>("[role=dialog] [data-first]") ?? true;
}
