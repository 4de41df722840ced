// Which model answers: what each provider offers, in one list.
import { useQueries } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import type { ProvidersView } from "../api/schema";
import { modelsQuery } from "./api";

type Props = {
  providers: ProvidersView;
  provider: string | null;
  model: string | null;
  onChange: (provider: string, model: string) => void;
};

/** Provider and model in one value; a provider's id has no such character. */
const joined = (provider: string, model: string) => `${provider}\n${model}`;

export function ModelSelect({ providers, provider, model, onChange }: Props) {
  const { t } = useTranslation();
  const answers = useQueries({ queries: providers.providers.map(({ id }) => modelsQuery(id)) });
  const choose = (value: string) => {
    const at = value.indexOf("\n");
    if (at > 0) onChange(value.slice(0, at), value.slice(at + 1));
  };
  return (
    <select
      className="input input-quiet w-auto max-w-52 min-w-0 truncate"
      aria-label={t("chat.model")}
      value={provider && model ? joined(provider, model) : ""}
      onChange={(event) => choose(event.target.value)}
    >
      {!(provider && model) && <option value="">{t("chat.chooseModel")}</option>}
      {providers.providers.map(({ id, name, default_model: usual }, index) => {
        const answer = answers[index]!;
        const listed = answer.data?.models ?? [];
        // What is in use stands in the list, even where the provider does not name it.
        const more = [usual, id === provider ? model : null].filter((name) => name && !listed.includes(name));
        return (
          <optgroup key={id} label={name}>
            {[...new Set([...more, ...listed])].map((name) => (
              <option key={name} value={joined(id, name!)}>
                {name}
              </option>
            ))}
            {!answer.isPending && !answer.isError && listed.length + more.length === 0 && (
              <option disabled>{t("chat.noModels")}</option>
            )}
            {answer.isError && <option disabled>{t("chat.modelsFailed")}</option>}
          </optgroup>
        );
      })}
    </select>
  );
}
