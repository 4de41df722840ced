// A provider while it is edited, and what is sent of it. Pure.
import type { TFunction } from "i18next";
import type { ProviderBody, ProviderKind, ProviderView, ProvidersView } from "../api/schema";

export type ProviderDraft = {
  kind: ProviderKind;
  name: string;
  /** Empty for the address that its sort usually has. */
  baseUrl: string;
  key: string;
  dropKey: boolean;
  model: string;
  /** Asked where nobody is named. */
  use: boolean;
};

export const kindOf = (all: ProvidersView, kind: string | undefined) => all.kinds.find((known) => known.kind === kind);

/** What a sort of provider is called; names of companies are the same in every language. */
export const kindWords = (kind: ProviderKind, all: ProvidersView, t: TFunction): string =>
  kind === "openai" ? t("models.kindOpenai") : (kindOf(all, kind)?.name ?? kind);

export function draftOf(all: ProvidersView, provider: ProviderView | null, t: TFunction): ProviderDraft {
  const kind = kindOf(all, provider?.kind) ?? all.kinds[0];
  return {
    kind: kind?.kind ?? "openai",
    name: provider?.name ?? (kind ? kindWords(kind.kind, all, t) : ""),
    baseUrl: provider && provider.base_url !== kind?.base_url ? provider.base_url : "",
    key: "",
    dropKey: false,
    model: provider?.default_model ?? "",
    use: provider?.is_default ?? !all.configured,
  };
}

/** What is sent. A key that was not typed stays as it is. */
export function changeOf(draft: ProviderDraft, all: ProvidersView): ProviderBody {
  return {
    kind: draft.kind,
    name: draft.name.trim(),
    base_url: draft.baseUrl.trim() || (kindOf(all, draft.kind)?.base_url ?? ""),
    ...(draft.key ? { api_key: draft.key.trim() } : draft.dropKey ? { api_key: "" } : {}),
    default_model: draft.model.trim(),
    ...(draft.use ? { is_default: true } : {}),
  };
}

/** A name as an id that nobody has yet. */
export function idFor(name: string, kind: string, taken: readonly string[]): string {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 36)
    .replace(/^-+|-+$/g, "");
  const base = plain || kind;
  for (let n = 1; ; n += 1) {
    const id = n === 1 ? base : `${base}-${n}`;
    if (!taken.includes(id)) return id;
  }
}
