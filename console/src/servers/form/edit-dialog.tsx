// Changes a server, from the list or from its own page.
import { useId } from "react";
import { useTranslation } from "react-i18next";
import { useLocation } from "wouter";
import type { ServerView } from "../../api/schema";
import { Modal } from "../../ui/modal";
import { tellSuccess } from "../../ui/notices";
import { serverHref } from "../status";
import { draftOf } from "./draft";
import { SaveFoot } from "./save-foot";
import { ServerFormFields } from "./server-form";
import { useServerForm } from "./use-server-form";

export default function EditDialog({ server, onClose }: { server: ServerView; onClose: () => void }) {
  const { t } = useTranslation();
  const [path, navigate] = useLocation();
  const id = useId();
  const saved = (now: ServerView) => {
    tellSuccess(t("form.saved"));
    onClose();
    if (path.startsWith("/servers/") && now.name !== server.name) navigate(serverHref(now.name), { replace: true });
  };
  const form = useServerForm({ initial: draftOf(server), edited: server, onSaved: saved });
  const running = server.status !== "stopped" && server.status !== "error";
  const note = form.starts ? t("form.switchedOff") : running ? t("form.restartsOnSave") : undefined;
  return (
    <Modal title={t("form.edit", { name: server.name })} open onClose={onClose} wide steady>
      <ServerFormFields form={form} id={id} />
      <SaveFoot form={form} formId={id} onCancel={onClose} note={note} />
    </Modal>
  );
}
