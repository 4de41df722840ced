// Asks before something that cannot be undone; the title names what it is about.
import { AlertDialog } from "@base-ui/react/alert-dialog";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";

type Props = {
  title: string;
  open: boolean;
  onCancel: () => void;
  onConfirm: () => void;
  confirm: string;
  cancel?: string;
  busy?: boolean;
  children: ReactNode;
};

export function Confirm({ title, open, onCancel, onConfirm, confirm, cancel, busy = false, children }: Props) {
  const { t } = useTranslation();
  return (
    <AlertDialog.Root open={open} onOpenChange={(next) => !next && onCancel()}>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className="backdrop" />
        <AlertDialog.Popup className="fixed top-1/2 left-1/2 z-50 w-[calc(100vw-2rem)] max-w-md -translate-x-1/2 -translate-y-1/2 rounded-xl border border-line bg-surface p-5 shadow-2xl outline-none">
          <AlertDialog.Title className="text-lg font-semibold">{title}</AlertDialog.Title>
          <AlertDialog.Description render={<div />} className="mt-2 text-soft">
            {children}
          </AlertDialog.Description>
          <div className="mt-5 flex justify-end gap-2">
            <AlertDialog.Close className="btn">{cancel ?? t("common.cancel")}</AlertDialog.Close>
            <button type="button" className="btn btn-danger" onClick={onConfirm} disabled={busy} aria-busy={busy}>
              {confirm}
            </button>
          </div>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
