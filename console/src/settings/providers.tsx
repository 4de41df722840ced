// Who answers in the chat: the providers of models, with a test for each.
import { useMutation, useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { Suspense, lazy, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ProviderBody, ProviderView, ProvidersView } from "../api/schema";
import { modelsQuery, providersQuery, refreshProviders, removeProvider, saveProvider, testProvider } from "../chat/api";
import { FailureAlert } from "../ui/alert";
import { Confirm } from "../ui/confirm";
import { tellFailure } from "../ui/notices";
import { EmptyState, Loading } from "../ui/states";
import { kindWords } from "./provider-draft";
import { TestReport } from "./test-report";

const ProviderDialog = lazy(() => import("./provider-dialog"));

export function ProviderSettings() {
  const { t } = useTranslation();
  const query = useQuery(providersQuery);
  return (
    <>
      <p className="text-soft">{t("models.lead")}</p>
      {query.isError && !query.data && (
        <FailureAlert title={t("models.loadFailed")} failure={query.error} retry={() => void query.refetch()} />
      )}
      {query.isPending && <Loading label={t("app.loading")} />}
      {query.data && <ProviderList all={query.data} />}
    </>
  );
}

function ProviderList({ all }: { all: ProvidersView }) {
  const { t } = useTranslation();
  const [editing, setEditing] = useState<ProviderView | "new" | null>(null);
  return (
    <>
      {all.providers.length === 0 ? (
        <EmptyState title={t("models.none")}>{t("chat.notConfiguredText")}</EmptyState>
      ) : (
        <ul aria-label={t("models.list")} className="divide-y divide-line rounded-lg border border-line">
          {all.providers.map((provider) => (
            <ProviderItem key={provider.id} all={all} provider={provider} onEdit={() => setEditing(provider)} />
          ))}
        </ul>
      )}
      <button type="button" className="btn" onClick={() => setEditing("new")}>
        <Plus size={15} aria-hidden />
        {t("models.add")}
      </button>
      {editing && (
        <Suspense fallback={null}>
          <ProviderDialog all={all} provider={editing === "new" ? null : editing} onClose={() => setEditing(null)} />
        </Suspense>
      )}
    </>
  );
}

type ItemProps = { all: ProvidersView; provider: ProviderView; onEdit: () => void };

function ProviderItem({ all, provider, onEdit }: ItemProps) {
  const { t } = useTranslation();
  const kind = all.kinds.find(({ kind }) => kind === provider.kind);
  const own = provider.source === "settings";
  const model = provider.default_model ?? (all.default?.provider === provider.id ? all.default.model : null);
  const test = useMutation({ mutationFn: () => testProvider(provider.id, {}) });
  return (
    <li className="space-y-2 px-3 py-3">
      <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <span className="font-medium">{provider.name}</span>
        {provider.is_default && <span className="tag bg-accent-soft text-accent">{t("models.isDefault")}</span>}
        {!own && <span className="tag">{t("models.fromEnvironment")}</span>}
        {provider.overrides_environment && <span className="tag">{t("models.overrides")}</span>}
        {!model && <span className="tag bg-warn-soft text-warn">{t("models.withoutModel")}</span>}
        <span className="tag">{t(provider.has_key ? "models.hasKey" : "models.noKey")}</span>
      </div>
      <p className="text-sm text-soft">
        {kindWords(provider.kind, all, t)} · <code>{provider.base_url}</code>
      </p>
      {own ? (
        <DefaultModel provider={provider} />
      ) : (
        <>
          {provider.default_model && (
            <p className="text-sm">
              <span className="text-soft">{t("models.defaultModel")}: </span>
              <code>{provider.default_model}</code>
            </p>
          )}
          <p className="text-sm text-soft">
            {t("models.readOnly", { variables: (kind?.environment ?? []).join(", ") })}
          </p>
        </>
      )}
      <ItemButtons
        provider={provider}
        own={own}
        testing={test.isPending}
        onTest={() => test.mutate()}
        onEdit={onEdit}
      />
      <TestReport test={test} />
    </li>
  );
}

type ButtonsProps = { provider: ProviderView; own: boolean; testing: boolean; onTest: () => void; onEdit: () => void };

function ItemButtons({ provider, own, testing, onTest, onEdit }: ButtonsProps) {
  const { t } = useTranslation();
  const { name } = provider;
  const [asking, setAsking] = useState(false);
  const change = useChange(provider);
  return (
    <div className="flex flex-wrap gap-2">
      <button
        type="button"
        className="btn btn-small"
        aria-label={t("models.test", { name })}
        disabled={testing}
        aria-busy={testing}
        onClick={onTest}
      >
        {t("models.testShort")}
      </button>
      {own && (
        <>
          <button type="button" className="btn btn-small" aria-label={t("models.edit", { name })} onClick={onEdit}>
            {t("models.editShort")}
          </button>
          {!provider.is_default && (
            <button
              type="button"
              className="btn btn-small"
              aria-label={t("models.makeDefaultOf", { name })}
              disabled={change.isPending}
              onClick={() => change.mutate({ is_default: true })}
            >
              {t("models.makeDefault")}
            </button>
          )}
          <button
            type="button"
            className="btn btn-small"
            aria-label={t("models.remove", { name })}
            onClick={() => setAsking(true)}
          >
            {t("models.removeShort")}
          </button>
        </>
      )}
      {asking && <RemoveProvider provider={provider} onClose={() => setAsking(false)} />}
    </div>
  );
}

function useChange(provider: ProviderView) {
  const { t } = useTranslation();
  return useMutation({
    mutationFn: (change: ProviderBody) => saveProvider(provider.id, change),
    onError: (error) => tellFailure(t("models.saveFailed"), error),
    onSettled: refreshProviders,
  });
}

/** The models that the provider lists. */
function DefaultModel({ provider }: { provider: ProviderView }) {
  const { t } = useTranslation();
  const models = useQuery(modelsQuery(provider.id));
  const change = useChange(provider);
  const current = provider.default_model ?? "";
  const names = [...new Set([...(current ? [current] : []), ...(models.data?.models ?? [])])];
  return (
    <div className="text-sm">
      <span className="flex flex-wrap items-center gap-2">
        <span className="text-soft">{t("models.defaultModel")}</span>
        <select
          className="input input-quiet max-w-full"
          aria-label={t("models.defaultModelOf", { name: provider.name })}
          value={current}
          disabled={change.isPending}
          onChange={(event) => change.mutate({ default_model: event.target.value })}
        >
          <option value="">{t("models.noModel")}</option>
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </span>
      {models.isError && <p className="mt-1 text-warn">{t("models.listFailed", { why: models.error.message })}</p>}
    </div>
  );
}

function RemoveProvider({ provider, onClose }: { provider: ProviderView; onClose: () => void }) {
  const { t } = useTranslation();
  const { id, name } = provider;
  const drop = useMutation({
    mutationFn: () => removeProvider(id),
    onSuccess: onClose,
    onSettled: refreshProviders,
  });
  return (
    <Confirm
      title={t("models.removeTitle", { name })}
      open
      onCancel={onClose}
      confirm={t("models.removeShort")}
      busy={drop.isPending}
      onConfirm={() => drop.mutate()}
    >
      <p>{t("models.removeText")}</p>
      {drop.isError && (
        <div className="mt-3 text-ink">
          <FailureAlert title={t("models.removeFailed", { name })} failure={drop.error} />
        </div>
      )}
    </Confirm>
  );
}
