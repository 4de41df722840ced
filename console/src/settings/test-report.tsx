// What came of asking a provider's model a question.
import type { UseMutationResult } from "@tanstack/react-query";
import { CircleCheck, LoaderCircle } from "lucide-react";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import type { ModelFailure, ProviderTest } from "../api/schema";
import { problemWords } from "../chat/problem";
import { Alert, FailureAlert } from "../ui/alert";
import { milliseconds } from "../ui/format";
import { Sentence } from "../ui/sentence";

export type Testing = Pick<UseMutationResult<ProviderTest>, "data" | "error" | "isPending">;

export function TestReport({ test }: { test: Testing }) {
  const { t } = useTranslation();
  const report = useRef<HTMLDivElement>(null);
  // On a phone it stands below what is in sight.
  useEffect(() => {
    if (test.data || test.error) report.current?.scrollIntoView({ block: "nearest" });
  }, [test.data, test.error]);
  return (
    <div ref={report} aria-live="polite">
      {test.isPending ? (
        <p className="flex items-center gap-2 text-sm text-soft">
          <LoaderCircle size={14} className="spin" aria-hidden />
          {t("models.testing")}
        </p>
      ) : test.error ? (
        <FailureAlert title={t("models.notTested")} failure={test.error} />
      ) : (
        test.data && <TestOutcome test={test.data} />
      )}
    </div>
  );
}

function TestOutcome({ test }: { test: ProviderTest }) {
  const { t } = useTranslation();
  if (test.ok)
    return (
      <p className="flex flex-wrap items-center gap-x-2 text-sm text-ok">
        <CircleCheck size={15} className="flex-none" aria-hidden />
        <span>{t("models.testOk", { model: test.model ?? "", ms: milliseconds(test.duration_ms) })}</span>
        {test.models != null && <span className="text-soft">{t("models.testModels", { count: test.models })}</span>}
      </p>
    );
  const problem: ModelFailure = test.error ?? { kind: "internal", message: test.message };
  return (
    <Alert title={t("models.testFailed", { why: problemWords(problem, t) })}>
      <Sentence text={problem.message} />
      {problem.hint && <Sentence text={problem.hint} className="text-soft" />}
    </Alert>
  );
}
