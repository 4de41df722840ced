// The settings of a server: the same form as for a new one, and what cannot be undone below it.
// What was typed survives a look at another tab.
import { Trash2 } from "lucide-react";
import { useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { useLocation } from "wouter";
import type { ServerView } from "../api/schema";
import { openDialog } from "../ui/dialogs";
import { tellSuccess } from "../ui/notices";
import { type Draft, draftOf } from "./form/draft";
import { SaveButtons } from "./form/save-buttons";
import { ServerFormFields } from "./form/server-form";
import { useServerForm } from "./form/use-server-form";
import { serverHref } from "./status";

const drafts = new Map<string, Draft>();

export default function SettingsTab({ server }: { server: ServerView }) {
  const [round, setRound] = useState(0);
  return (
    <div className="max-w-3xl space-y-6">
      <SettingsForm key={round} server={server} onDone={() => setRound(round + 1)} />
      <DangerZone server={server} />
    </div>
  );
}

function SettingsForm({ server, onDone }: { server: ServerView; onDone: () => void }) {
  const { t } = useTranslation();
  const [, navigate] = useLocation();
  const id = useId();
  const [dirty, setDirty] = useState(drafts.has(server.id));
  const finish = () => {
    drafts.delete(server.id);
    onDone();
  };
  const saved = (now: ServerView) => {
    tellSuccess(t("form.saved"));
    finish();
    if (now.name !== server.name) navigate(serverHref(now.name, "settings"), { replace: true });
  };
  const typed = (draft: Draft) => {
    drafts.set(server.id, draft);
    setDirty(true);
  };
  const form = useServerForm({
    initial: drafts.get(server.id) ?? draftOf(server),
    edited: server,
    onSaved: saved,
    onDraft: typed,
  });
  useLeaveGuard(dirty);
  return (
    <div className="card p-4">
      <ServerFormFields form={form} id={id} />
      <div className="mt-4 flex flex-wrap items-center gap-2">
        <SaveButtons form={form} formId={id} />
        {dirty && (
          <>
            <button type="button" className="btn" onClick={finish}>
              {t("form.discard")}
            </button>
            <span className="tag bg-warn-soft text-warn">{t("form.dirty")}</span>
          </>
        )}
        {(server.enabled || form.starts) && (
          <p className="text-sm text-soft">{t(form.starts ? "form.switchedOff" : "form.restartsOnSave")}</p>
        )}
      </div>
    </div>
  );
}

/** The browser asks before it throws away what was typed. */
function useLeaveGuard(dirty: boolean): void {
  useEffect(() => {
    if (!dirty) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", ask);
    return () => window.removeEventListener("beforeunload", ask);
  }, [dirty]);
}

function DangerZone({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  return (
    <div className="card flex flex-wrap items-center justify-between gap-3 border-bad/40 p-4">
      <p className="text-soft">{t("remove.running")}</p>
      <button type="button" className="btn text-bad" onClick={() => openDialog({ kind: "delete", server })}>
        <Trash2 size={15} aria-hidden />
        {t("remove.confirm")}
      </button>
    </div>
  );
}
