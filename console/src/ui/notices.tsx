// Failures of actions, which stay until they are dismissed, and short words of success.
import { CircleCheck, X } from "lucide-react";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { createStore, useStore } from "../api/store";
import { FailureAlert } from "./alert";

type Notice = { id: number; title: string; failure?: unknown };

const MAX_NOTICES = 4;
const SUCCESS_MS = 4000;
const notices = createStore<readonly Notice[]>([]);
let nextId = 0;

function push(notice: Omit<Notice, "id">): void {
  nextId += 1;
  notices.set((all) =>
    [...all.filter(({ title }) => title !== notice.title), { ...notice, id: nextId }].slice(-MAX_NOTICES),
  );
}

export function tellFailure(title: string, failure: unknown): void {
  push({ title, failure });
}

export function tellSuccess(title: string): void {
  push({ title });
}

const dismiss = (id: number) => notices.set((all) => all.filter((notice) => notice.id !== id));

export function Notices() {
  const { t } = useTranslation();
  const all = useStore(notices);
  return (
    <div className="pointer-events-none fixed inset-x-4 bottom-20 z-60 flex flex-col items-end gap-2 md:bottom-4">
      {all.map((notice) => (
        <div
          key={notice.id}
          className="pointer-events-auto flex w-full max-w-md items-start gap-1 rounded-lg border border-line bg-surface p-1 shadow-lg"
        >
          <div className="min-w-0 flex-1">
            {notice.failure === undefined ? (
              <Success notice={notice} />
            ) : (
              <FailureAlert title={notice.title} failure={notice.failure} />
            )}
          </div>
          <button
            type="button"
            className="btn btn-quiet btn-icon"
            aria-label={t("common.dismiss")}
            onClick={() => dismiss(notice.id)}
          >
            <X size={16} aria-hidden />
          </button>
        </div>
      ))}
    </div>
  );
}

function Success({ notice }: { notice: Notice }) {
  useEffect(() => {
    const timer = setTimeout(() => dismiss(notice.id), SUCCESS_MS);
    return () => clearTimeout(timer);
  }, [notice.id]);
  return (
    <p role="status" className="flex items-center gap-2 px-3 py-1.5 font-medium">
      <CircleCheck size={16} className="text-ok" aria-hidden />
      {notice.title}
    </p>
  );
}
