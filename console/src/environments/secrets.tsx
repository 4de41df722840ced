// The secrets that a repository asks for: what each reads on this machine, and the user's approval.
import type { TFunction } from "i18next";
import { useTranslation } from "react-i18next";
import type { SecretView } from "../api/schema";
import { Alert, FailureAlert } from "../ui/alert";
import { useDecideSecret } from "./queries";

type Props = { repository: string; secrets: readonly SecretView[] };

export function Secrets({ repository, secrets }: Props) {
  const { t } = useTranslation();
  const decide = useDecideSecret();
  if (secrets.length === 0) return null;
  const open = secrets.some((secret) => secret.state === "pending" || secret.state === "changed");
  return (
    <div className="mb-3 space-y-2">
      <Alert
        tone={open ? "warn" : "info"}
        role="note"
        label={t("environments.secretsOf", { path: repository })}
        title={t(open ? "environments.secretsOpen" : "environments.secrets")}
      >
        {open && <p>{t("environments.secretsHint")}</p>}
        <ul className="mt-1.5 space-y-1.5" aria-label={t("environments.secretsOf", { path: repository })}>
          {secrets.map((secret) => (
            <Secret
              key={`${secret.name}=${secret.reference}`}
              secret={secret}
              busy={decide.isPending}
              onDecide={(allow) => decide.mutate({ repository, name: secret.name, reference: secret.reference, allow })}
            />
          ))}
        </ul>
      </Alert>
      {decide.isError && <FailureAlert title={t("environments.secretFailed")} failure={decide.error} />}
    </div>
  );
}

type SecretProps = { secret: SecretView; busy: boolean; onDecide: (allow: boolean) => void };

function Secret({ secret: { name, reference, file, state }, busy, onDecide }: SecretProps) {
  const { t } = useTranslation();
  const allowed = state === "allowed" || state === "unused";
  return (
    <li className="flex flex-wrap items-center gap-x-2 gap-y-1">
      <code className="font-medium">{name}</code>
      <span className="min-w-0 flex-1 break-all">
        {source(reference, file, t)} ({t(`environments.secretStates.${state}`)})
      </span>
      <button
        type="button"
        className="btn btn-small"
        disabled={busy}
        aria-label={t(allowed ? "environments.revokeOf" : "environments.allowOf", { name })}
        onClick={() => onDecide(!allowed)}
      >
        {t(allowed ? "environments.revoke" : "environments.allow")}
      </button>
    </li>
  );
}

/** What is read: the file that the reference leads to, rather than what the repository calls it. */
function source(reference: string, file: string | null | undefined, t: TFunction) {
  if (file) return t("environments.readsFile", { file });
  if (reference.startsWith("env://"))
    return t("environments.readsVariable", { name: reference.slice("env://".length) });
  return reference;
}
