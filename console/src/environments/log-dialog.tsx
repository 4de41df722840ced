// What was done in an environment: a step for each of its commits.
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import type { EnvironmentStep } from "../api/schema";
import { useLanguage } from "../settings/preferences";
import { Alert, FailureAlert } from "../ui/alert";
import { CopyButton } from "../ui/copy-button";
import { when } from "../ui/format";
import { Modal } from "../ui/modal";
import { EmptyState, Loading } from "../ui/states";
import { ExitWord } from "./exit-word";
import { type Place, logQuery } from "./queries";

export function LogDialog({ place, onClose }: { place: Place; onClose: () => void }) {
  const { t } = useTranslation();
  const query = useQuery(logQuery(place));
  const { id, branch } = place.environment;
  return (
    <Modal title={t("environments.logTitle", { id })} open onClose={onClose} shape="side">
      <p className="mb-4 flex flex-wrap items-center gap-2 text-sm text-soft">
        {t("environments.logHint")}
        <CopyButton text={`git log --patch ${branch}`} label={t("environments.copyLog")} />
      </p>
      {query.isPending && <Loading label={t("app.loading")} />}
      {query.isError && !query.data && (
        <FailureAlert title={t("environments.logFailed")} failure={query.error} retry={() => void query.refetch()} />
      )}
      {query.data && query.data.steps.length === 0 && <EmptyState title={t("environments.logEmpty")} />}
      {query.data && query.data.steps.length > 0 && (
        <ol aria-label={t("environments.logList")} className="space-y-4">
          {query.data.steps.map((step) => (
            <Step key={step.commit} step={step} />
          ))}
        </ol>
      )}
      {query.data?.truncated && (
        <div className="mt-4">
          <Alert tone="info" role="note" title={t("environments.logTruncated")} />
        </div>
      )}
    </Modal>
  );
}

function Step({ step }: { step: EnvironmentStep }) {
  const language = useLanguage();
  return (
    <li className="border-l-2 border-line pl-3">
      <p className="font-medium">{step.subject}</p>
      <p className="flex flex-wrap items-baseline gap-x-3 text-sm text-soft">
        <time dateTime={step.at}>{when(step.at, language)}</time>
        <code title={step.commit}>{step.commit.slice(0, 10)}</code>
        {step.exit_code !== undefined && step.exit_code !== null && (
          <ExitWord command={{ running: false, exit_code: step.exit_code }} />
        )}
      </p>
      {step.command && (
        <pre className="code-block mt-1.5 max-h-40" tabIndex={0}>
          {step.command}
        </pre>
      )}
    </li>
  );
}
