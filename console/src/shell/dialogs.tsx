// The dialog that is open, if any. Each is loaded when it is first needed.
import { Suspense, lazy } from "react";
import { useStore } from "../api/store";
import { closeDialog, dialog } from "../ui/dialogs";

const AddDialog = lazy(() => import("../servers/form/add-dialog"));
const EditDialog = lazy(() => import("../servers/form/edit-dialog"));
const DeleteDialog = lazy(() => import("../servers/delete-dialog"));
const HelpDialog = lazy(() => import("./help-dialog"));

export function Dialogs() {
  const open = useStore(dialog);
  if (!open) return null;
  return (
    <Suspense fallback={null}>
      {open.kind === "add" && <AddDialog {...open} onClose={closeDialog} />}
      {open.kind === "edit" && <EditDialog server={open.server} onClose={closeDialog} />}
      {open.kind === "delete" && <DeleteDialog server={open.server} onClose={closeDialog} />}
      {open.kind === "help" && <HelpDialog onClose={closeDialog} />}
    </Suspense>
  );
}
