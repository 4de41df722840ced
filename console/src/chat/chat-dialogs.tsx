// Renaming a conversation, and the question before it is deleted.
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { FailureAlert } from "../ui/alert";
import { Confirm } from "../ui/confirm";
import { Field } from "../ui/field";
import { guardComposition } from "../ui/ime";
import { Modal } from "../ui/modal";
import { refreshConversations, remove, rename } from "./api";

type Target = { id: string; title: string };

const MAX_TITLE = 200;

export function RenameDialog({ conversation, onClose }: { conversation: Target; onClose: () => void }) {
  const { t } = useTranslation();
  const formId = useId();
  const [title, setTitle] = useState(conversation.title);
  const save = useMutation({
    mutationFn: () => rename(conversation.id, title.trim()),
    onSuccess: onClose,
    onSettled: refreshConversations,
  });
  const [tried, setTried] = useState(false);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (title.trim()) save.mutate();
  };
  const foot = (
    <>
      <button type="button" className="btn" onClick={onClose}>
        {t("common.cancel")}
      </button>
      <button
        type="submit"
        form={formId}
        className="btn btn-primary"
        disabled={save.isPending}
        aria-busy={save.isPending}
      >
        {t("common.save")}
      </button>
    </>
  );
  return (
    <Modal title={t("chat.renameTitle")} open onClose={onClose} foot={foot}>
      <form id={formId} noValidate onSubmit={submit} onKeyDown={guardComposition} className="space-y-3">
        <Field label={t("chat.titleField")} error={tried && !title.trim() ? t("chat.titleRequired") : null}>
          {(field) => (
            <input
              {...field}
              data-first
              className="input"
              value={title}
              maxLength={MAX_TITLE}
              onChange={(event) => setTitle(event.target.value)}
              autoComplete="off"
            />
          )}
        </Field>
        {save.isError && <FailureAlert title={t("chat.renameFailed")} failure={save.error} />}
      </form>
    </Modal>
  );
}

type DeleteProps = { conversation: Target; onClose: () => void; onDeleted: () => void };

export function DeleteConversation({ conversation, onClose, onDeleted }: DeleteProps) {
  const { t } = useTranslation();
  const drop = useMutation({
    mutationFn: () => remove(conversation.id),
    onSuccess: onDeleted,
    onSettled: refreshConversations,
  });
  return (
    <Confirm
      title={t("remove.title", { name: conversation.title })}
      open
      onCancel={onClose}
      confirm={t("remove.confirm")}
      busy={drop.isPending}
      onConfirm={() => drop.mutate()}
    >
      <p>{t("chat.deleteText")}</p>
      {drop.isError && (
        <div className="mt-3 text-ink">
          <FailureAlert title={t("chat.deleteFailed")} failure={drop.error} />
        </div>
      )}
    </Confirm>
  );
}
