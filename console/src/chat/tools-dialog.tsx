// Which servers and which of their tools the model may use, and what their definitions cost.
import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { useTranslation } from "react-i18next";
import { StatusWord } from "../servers/status";
import type { ToolServerView, ToolView, ToolsView } from "../api/schema";
import { FailureAlert } from "../ui/alert";
import { Modal } from "../ui/modal";
import { EmptyState, Loading } from "../ui/states";
import { offerQuery } from "./api";
import { DisclosureButton, useOpen } from "./disclosure";

type Choice = { servers: string[] | null; toolsOff: string[] };
type Props = Choice & { onChange: (choice: Choice) => void; onClose: () => void };

export default function ToolsDialog({ servers, toolsOff, onChange, onClose }: Props) {
  const { t } = useTranslation();
  const query = useQuery(offerQuery(servers, toolsOff));
  return (
    <Modal title={t("chat.toolsTitle")} open onClose={onClose} shape="side">
      {query.isError && !query.data && (
        <FailureAlert title={t("chat.toolsFailed")} failure={query.error} retry={() => void query.refetch()} />
      )}
      {query.isPending && <Loading label={t("app.loading")} />}
      {query.data && <Offer offer={query.data} servers={servers} toolsOff={toolsOff} onChange={onChange} />}
    </Modal>
  );
}

type OfferProps = Choice & { offer: ToolsView; onChange: (choice: Choice) => void };

function Offer({ offer, servers, toolsOff, onChange }: OfferProps) {
  const { t } = useTranslation();
  const isOn = (name: string) => servers === null || servers.includes(name);
  const all = offer.servers.map(({ server }) => server);
  const toggleServer = (name: string) => {
    const next = all.filter((server) => (server === name ? !isOn(name) : isOn(server)));
    onChange({ servers: next.length === all.length ? null : next, toolsOff });
  };
  const toggleTool = (id: string) =>
    onChange({ servers, toolsOff: toolsOff.includes(id) ? toolsOff.filter((off) => off !== id) : [...toolsOff, id] });
  if (all.length === 0) return <EmptyState title={t("first.title")}>{t("chat.noServers")}</EmptyState>;
  return (
    <div className="space-y-4">
      <p className="text-soft">{t("chat.toolsLead")}</p>
      <p role="status" className="flex flex-wrap items-center gap-3 font-medium">
        {t("chat.tokens", { n: offer.estimated_tokens.toLocaleString("en-US") })}
      </p>
      <ul className="card divide-y divide-line" aria-label={t("app.servers")}>
        {offer.servers.map((server) => (
          <ServerItem
            key={server.server}
            server={server}
            on={isOn(server.server)}
            tools={offer.tools.filter((tool) => tool.server === server.server)}
            toolsOff={toolsOff}
            onToggle={() => toggleServer(server.server)}
            onTool={toggleTool}
          />
        ))}
      </ul>
      {(servers !== null || toolsOff.length > 0) && (
        <button type="button" className="btn" onClick={() => onChange({ servers: null, toolsOff: [] })}>
          {t("chat.useAll")}
        </button>
      )}
    </div>
  );
}

type ItemProps = {
  server: ToolServerView;
  on: boolean;
  tools: ToolView[];
  toolsOff: string[];
  onToggle: () => void;
  onTool: (id: string) => void;
};

function ServerItem({ server, on, tools, toolsOff, onToggle, onTool }: ItemProps) {
  const { t } = useTranslation();
  const id = useId();
  const [open, toggle] = useOpen(`chat-tools:${server.server}`, false);
  return (
    <li className="px-3 py-2.5">
      <div className="flex items-start gap-2.5">
        <input id={id} type="checkbox" className="check" checked={on} onChange={onToggle} />
        <div className="min-w-0 flex-1">
          <label htmlFor={id} className="font-medium">
            {server.server}
          </label>
          <p className="flex flex-wrap gap-x-3 text-sm text-soft">
            <StatusWord status={server.status} />
            {on && server.tools > 0 && (
              <span>
                {t("list.toolCount", { count: server.tools })} ·{" "}
                {t("overview.tokensValue", { n: server.estimated_tokens.toLocaleString("en-US") })}
              </span>
            )}
            {server.include_resources && <span className="tag">{t("form.includeResources")}</span>}
          </p>
          {server.error && <p className="text-sm text-bad">{server.error}</p>}
        </div>
        {on && tools.length > 0 && (
          <DisclosureButton open={open} onToggle={toggle} controls={`${id}-tools`}>
            <span>{t("chat.toolsOf")}</span>
            <span className="sr-only">{server.server}</span>
          </DisclosureButton>
        )}
      </div>
      {open && on && (
        <ul id={`${id}-tools`} className="mt-2 ml-6 space-y-1.5">
          {tools.map((tool) => (
            <ToolItem key={tool.name} tool={tool} off={toolsOff} onTool={onTool} />
          ))}
        </ul>
      )}
    </li>
  );
}

function ToolItem({ tool, off, onTool }: { tool: ToolView; off: string[]; onTool: (id: string) => void }) {
  const { t } = useTranslation();
  const id = useId();
  const key = `${tool.server}/${tool.tool}`;
  return (
    <li className="flex items-start gap-2.5">
      <input id={id} type="checkbox" className="check" checked={!off.includes(key)} onChange={() => onTool(key)} />
      <div className="min-w-0 flex-1">
        <label htmlFor={id}>
          <code>{tool.tool}</code>
        </label>
        {tool.description && <p className="line-clamp-2 text-sm text-soft">{tool.description}</p>}
      </div>
      <span className="text-sm whitespace-nowrap text-soft">
        {t("overview.tokensValue", { n: tool.estimated_tokens.toLocaleString("en-US") })}
      </span>
    </li>
  );
}
