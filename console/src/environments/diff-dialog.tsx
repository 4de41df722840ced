// What an environment changed since it was made, file by file.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ChangedFile, EnvironmentDiff } from "../api/schema";
import { Alert, FailureAlert } from "../ui/alert";
import { CopyButton } from "../ui/copy-button";
import { Modal } from "../ui/modal";
import { EmptyState, Loading } from "../ui/states";
import { type DiffLine, type FileDiff, filesOf } from "./diff";
import { type Place, diffQuery } from "./queries";

/** Files beyond this many lines in all are shown on request. */
const OPEN_LINES = 1500;

export function DiffDialog({ place, onClose }: { place: Place; onClose: () => void }) {
  const { t } = useTranslation();
  const query = useQuery(diffQuery(place));
  return (
    <Modal
      title={t("environments.diffTitle", { id: place.environment.id })}
      open
      onClose={onClose}
      shape="side"
      foot={query.data && <CopyButton text={query.data.text} label={t("environments.copyDiff")} />}
    >
      {query.isPending && <Loading label={t("app.loading")} />}
      {query.isError && !query.data && (
        <FailureAlert title={t("environments.diffFailed")} failure={query.error} retry={() => void query.refetch()} />
      )}
      {query.data && query.data.files.length === 0 && <EmptyState title={t("environments.diffEmpty")} />}
      {query.data && query.data.files.length > 0 && <Changes diff={query.data} />}
    </Modal>
  );
}

function Changes({ diff }: { diff: EnvironmentDiff }) {
  const { t } = useTranslation();
  const files = useMemo(() => filesOf(diff.text), [diff.text]);
  const counts = new Map(diff.files.map((file) => [file.path, file]));
  return (
    <>
      <p role="status" className="mb-3 text-soft">
        {t("environments.changedFiles", { count: diff.files.length })}
      </p>
      {diff.truncated && (
        <div className="mb-3">
          <Alert tone="warn" role="note" title={t("environments.diffTruncated")} />
        </div>
      )}
      <ul aria-label={t("environments.changes")} className="space-y-3">
        {files.map((file) => (
          <File key={file.path} file={file} count={counts.get(file.path)} open={file.endsAt <= OPEN_LINES} />
        ))}
      </ul>
    </>
  );
}

function File({ file, count, open }: { file: FileDiff; count: ChangedFile | undefined; open: boolean }) {
  const { t } = useTranslation();
  const [shown, setShown] = useState(open);
  const [added, removed] = [count?.added ?? null, count?.removed ?? null];
  return (
    <li className="overflow-hidden rounded-lg border border-line">
      <details open={shown} onToggle={(event) => setShown(event.currentTarget.open)}>
        <summary className="bg-sunken px-3 py-1.5">
          <code>{file.path}</code>
          {added !== null && removed !== null && (
            <span className="ml-3 text-sm whitespace-nowrap">
              <span className="text-ok">+{added}</span> <span className="text-bad">−{removed}</span>
            </span>
          )}
          {count && added === null && <span className="tag ml-3">{t("environments.binary")}</span>}
        </summary>
        {shown && (
          <pre
            role="region"
            aria-label={t("environments.changesOf", { path: file.path })}
            tabIndex={0}
            className="overflow-x-auto border-t border-line text-sm leading-5"
          >
            <code className="block w-max min-w-full [overflow-wrap:normal]">
              {file.lines.map((line, index) => (
                <Line key={index} line={line} />
              ))}
            </code>
          </pre>
        )}
      </details>
    </li>
  );
}

const TONES: Record<DiffLine["kind"], string> = {
  added: "bg-ok-soft text-ok",
  removed: "bg-bad-soft text-bad",
  place: "bg-sunken text-accent",
  head: "text-soft",
  same: "",
};

function Line({ line: { kind, text } }: { line: DiffLine }) {
  return <span className={`block px-3 whitespace-pre ${TONES[kind]}`}>{text === "" ? " " : text}</span>;
}
