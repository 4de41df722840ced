// How a command ended, as icon and words.
import { CircleCheck, CircleX, Clock, LoaderCircle } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { EnvironmentCommand } from "../api/schema";

type Props = { command: Pick<EnvironmentCommand, "running" | "exit_code" | "failure"> };

export function ExitWord({ command: { running, exit_code: code, failure } }: Props) {
  const { t } = useTranslation();
  const [tone, Icon, word] = (() => {
    if (running) return ["text-accent", LoaderCircle, t("environments.running")] as const;
    if (code === 0) return ["text-ok", CircleCheck, t("environments.exit", { code })] as const;
    if (code !== null && code !== undefined) return ["text-bad", CircleX, t("environments.exit", { code })] as const;
    if (failure === "timeout") return ["text-bad", Clock, t("environments.timedOut")] as const;
    return ["text-soft", CircleX, t(failure ? "environments.notRun" : "environments.ended")] as const;
  })();
  return (
    <span className={`inline-flex items-baseline gap-1 whitespace-nowrap ${tone}`}>
      <Icon size={13} className="self-center" aria-hidden />
      {word}
    </span>
  );
}
