// One server: its head, and its sections as tabs that are addresses.
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "wouter";
import { ApiFailure } from "../api/client";
import { useAway } from "../api/connection";
import { promptsQuery, resourcesQuery, serverQuery, toolsQuery } from "../api/queries";
import type { ServerView } from "../api/schema";
import { FailureAlert } from "../ui/alert";
import { lazyPage } from "../ui/lazy-page";
import { PageHead } from "../ui/page";
import { Loading } from "../ui/states";
import { TabPanel, Tabs } from "../ui/tabs";
import { useSample } from "./overview/usage-history";
import { Overview } from "./overview/overview";
import { ServerHead } from "./server-head";
import { serverHref } from "./status";

const ToolsTab = lazyPage(() => import("../tools/tools-tab"));
const ResourcesTab = lazyPage(() => import("../resources/resources-tab"));
const PromptsTab = lazyPage(() => import("../prompts/prompts-tab"));
const LogsTab = lazyPage(() => import("../logs/logs-tab"));
const SettingsTab = lazyPage(() => import("./settings-tab"));

const TABS = ["overview", "tools", "resources", "prompts", "logs", "settings"] as const;

export default function ServerPage({ params }: { params: { name: string; tab?: string } }) {
  const { t } = useTranslation();
  const query = useQuery(serverQuery(params.name));
  if (query.data) return <ServerSections server={query.data} tab={params.tab ?? "overview"} />;
  if (query.isPending) return <Loading label={t("app.loading")} />;
  if (query.error instanceof ApiFailure && query.error.kind === "not_found") return <Missing name={params.name} />;
  return <FailureAlert title={t("detail.loadFailed")} failure={query.error} retry={() => void query.refetch()} />;
}

function Missing({ name }: { name: string }) {
  const { t } = useTranslation();
  return (
    <>
      <PageHead title={t("detail.notFound", { name })} />
      <p className="mb-4 text-soft">{t("detail.notFoundHint")}</p>
      <Link href="/" className="btn">
        {t("app.backToServers")}
      </Link>
    </>
  );
}

function ServerSections({ server, tab }: { server: ServerView; tab: string }) {
  const { t } = useTranslation();
  const [, navigate] = useLocation();
  const away = useAway();
  const counts = useCounts(server);
  useSample(server);
  const tabs = TABS.map((value) => ({ value, title: t(`detail.${value}`), count: counts[value] }));
  const open = (TABS as readonly string[]).includes(tab) ? tab : "overview";
  return (
    <>
      <div className={away ? "stale" : ""}>
        <ServerHead server={server} tab={open} />
        <Tabs
          label={t("detail.sections")}
          tabs={tabs}
          value={open}
          onChange={(next) => navigate(serverHref(server.name, next))}
        >
          <TabPanel value="overview">
            <Overview server={server} />
          </TabPanel>
          <TabPanel value="tools">
            <ToolsTab server={server} />
          </TabPanel>
          <TabPanel value="resources">
            <ResourcesTab server={server} />
          </TabPanel>
          <TabPanel value="prompts">
            <PromptsTab server={server} />
          </TabPanel>
          <TabPanel value="logs">
            <LogsTab server={server} />
          </TabPanel>
          <TabPanel value="settings">
            <SettingsTab key={server.id} server={server} />
          </TabPanel>
        </Tabs>
      </div>
    </>
  );
}

/** How much there is behind a tab, where the server is there to be asked. */
function useCounts(server: ServerView): Partial<Record<string, number | undefined>> {
  const enabled = server.status === "ready";
  const offers = (what: string) => Boolean(server.capabilities && what in (server.capabilities as object));
  const tools = useQuery({ ...toolsQuery(server.id), enabled });
  const resources = useQuery({ ...resourcesQuery(server.id), enabled: enabled && offers("resources") });
  const prompts = useQuery({ ...promptsQuery(server.id), enabled: enabled && offers("prompts") });
  if (!enabled) return {};
  return {
    tools: tools.data?.length,
    resources: offers("resources") ? resources.data?.length : 0,
    prompts: offers("prompts") ? prompts.data?.length : 0,
  };
}
