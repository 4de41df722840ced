// How a client reaches this server, or all of them, through Cofer.
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ServerView } from "../../api/schema";
import { readToken } from "../../api/token";
import { CopyButton } from "../../ui/copy-button";
import { TabPanel, Tabs } from "../../ui/tabs";
import { Card } from "./overview";
import { type Snippet, endpointOf, snippetsFor } from "./snippets";

export function ConnectCard({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const [all, setAll] = useState(false);
  const [withToken, setWithToken] = useState(false);
  const [client, setClient] = useState("connect");
  const { origin } = window.location;
  const name = all ? null : server.name;
  const url = endpointOf({ origin, server: name });
  const snippets = snippetsFor({ origin, server: name, token: withToken ? readToken() : null });
  return (
    <Card title={t("connect.title")} hint={t("connect.hint")}>
      <div className="grid gap-x-8 gap-y-4 lg:grid-cols-[minmax(16rem,1fr)_2fr]">
        <div className="min-w-0 space-y-4">
          <Which all={all} onChange={setAll} />
          <div>
            <p className="mb-1 text-soft">{t("connect.endpoint")}</p>
            <p className="flex items-center gap-1.5">
              <code className="min-w-0 rounded bg-sunken px-1.5 py-0.5">{url}</code>
              <CopyButton text={url} label={t("connect.copyEndpoint")} iconOnly />
            </p>
          </div>
          {client !== "connect" && <WithToken checked={withToken} onChange={setWithToken} />}
        </div>
        <div className="min-w-0">
          <Tabs
            label={t("connect.clients")}
            tabs={snippets.map((snippet) => ({ value: snippet.client, title: t(`connect.names.${snippet.client}`) }))}
            value={client}
            onChange={setClient}
          >
            {snippets.map((snippet) => (
              <TabPanel key={snippet.client} value={snippet.client}>
                <SnippetView snippet={snippet} />
              </TabPanel>
            ))}
          </Tabs>
        </div>
      </div>
    </Card>
  );
}

function Which({ all, onChange }: { all: boolean; onChange: (all: boolean) => void }) {
  const { t } = useTranslation();
  return (
    <fieldset>
      <legend className="sr-only">{t("connect.which")}</legend>
      <div className="flex flex-wrap gap-1.5">
        {([false, true] as const).map((choice) => (
          <label key={String(choice)} className="chip cursor-pointer">
            <input
              type="radio"
              className="sr-only"
              name="connect-which"
              checked={all === choice}
              onChange={() => onChange(choice)}
            />
            {t(choice ? "connect.all" : "connect.one")}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function WithToken({ checked, onChange }: { checked: boolean; onChange: (checked: boolean) => void }) {
  const { t } = useTranslation();
  return (
    <label className="flex gap-2">
      <input type="checkbox" className="check" checked={checked} onChange={(event) => onChange(event.target.checked)} />
      <span>
        {t("connect.withToken")}
        <span className="block text-sm text-soft">{t("connect.withTokenHint")}</span>
      </span>
    </label>
  );
}

function SnippetView({ snippet: { client, file, text } }: { snippet: Snippet }) {
  const { t } = useTranslation();
  const name = t(`connect.names.${client}`);
  return (
    <>
      <p className="mb-1.5 text-sm text-soft">
        {t(`connect.hints.${client}`)} {file && <code>{file}</code>}
      </p>
      <div className="flex items-start gap-1.5">
        <pre
          role="region"
          className="code-block min-w-0 flex-1"
          aria-label={t("connect.snippetFor", { client: name })}
          tabIndex={0}
        >
          {text}
        </pre>
        <CopyButton text={text} label={t("connect.copyFor", { client: name })} iconOnly />
      </div>
    </>
  );
}
