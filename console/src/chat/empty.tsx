// What stands where there is no conversation to show.
import { Bot, MessageSquareOff } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "wouter";
import { FailureAlert } from "../ui/alert";
import { EmptyState, Loading } from "../ui/states";
import type { OpenChat } from "./use-chat";

/** A conversation that is on its way or cannot be had, or a new one. */
export function InsteadOfLog({ chat }: { chat: OpenChat }) {
  const { t } = useTranslation();
  const { id, feed, providers, retry } = chat;
  if (feed.failure !== null)
    return (
      <Middle>
        <FailureAlert title={t("chat.loadFailed")} failure={feed.failure} retry={retry} />
      </Middle>
    );
  if (id === null && providers.data)
    return !providers.data.configured ? <FirstModel /> : chat.choice.model ? <Welcome /> : <ChooseModel />;
  return (
    <Middle>
      {id === null && providers.isError ? (
        <FailureAlert
          title={t("chat.providersFailed")}
          failure={providers.error}
          retry={() => void providers.refetch()}
        />
      ) : (
        <Loading label={t("app.loading")} />
      )}
    </Middle>
  );
}

function Middle({ children }: { children: ReactNode }) {
  return <div className="flex min-h-0 flex-1 flex-col justify-center overflow-y-auto px-4">{children}</div>;
}

function Welcome() {
  const { t } = useTranslation();
  return (
    <Middle>
      <EmptyState icon={<Bot size={30} aria-hidden />} title={t("chat.welcome")}>
        {t("chat.welcomeText")}
      </EmptyState>
    </Middle>
  );
}

/** A provider that has no model cannot answer yet. */
function ChooseModel() {
  const { t } = useTranslation();
  const action = (
    <Link href="/settings" className="btn">
      {t("chat.openSettings")}
    </Link>
  );
  return (
    <Middle>
      <EmptyState icon={<MessageSquareOff size={30} aria-hidden />} title={t("chat.noModel")} action={action}>
        {t("chat.noModelText")}
      </EmptyState>
    </Middle>
  );
}

function FirstModel() {
  const { t } = useTranslation();
  const action = (
    <Link href="/settings" className="btn btn-primary">
      {t("chat.openSettings")}
    </Link>
  );
  return (
    <Middle>
      <EmptyState icon={<MessageSquareOff size={30} aria-hidden />} title={t("chat.notConfigured")} action={action}>
        {t("chat.notConfiguredText")}
      </EmptyState>
    </Middle>
  );
}

/** Under a conversation that nobody can go on with. */
export function NotConfigured() {
  const { t } = useTranslation();
  return (
    <p className="flex flex-wrap items-center justify-center gap-3 px-3 py-4 text-soft">
      {t("chat.notConfigured")}
      <Link href="/settings" className="btn">
        {t("chat.openSettings")}
      </Link>
    </p>
  );
}

export function Gone() {
  const { t } = useTranslation();
  const action = (
    <Link href="/chat" className="btn">
      {t("chat.new")}
    </Link>
  );
  return (
    <Middle>
      <EmptyState title={t("chat.gone")} action={action}>
        {t("chat.goneText")}
      </EmptyState>
    </Middle>
  );
}
