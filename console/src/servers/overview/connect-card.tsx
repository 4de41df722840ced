// How a client reaches this server, or all of them, through Cofer.
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { ServerView } from "../../api/schema";
import { readToken } from "../../api/token";
import { CopyButton } from "../../ui/copy-button";
import { TabPanel, Tabs } from "../../ui/tabs";
import { Card } from "./overview";
import { endpointOf, snippetsFor } from "./snippets";

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
      <fieldset className="mb-3">
        <legend className="sr-only">{t("connect.which")}</legend>
        <div className="flex flex-wrap gap-1.5">
          {([false, true] as const).map((choice) => (
            <label key={String(choice)} className="chip cursor-pointer">
              <input
                type="radio"
                className="sr-only"
                name="connect-which"
                checked={all === choice}
                onChange={() => setAll(choice)}
              />
              {t(choice ? "connect.all" : "connect.one")}
            </label>
          ))}
        </div>
      </fieldset>
      <p className="mb-1 text-soft">{t("connect.endpoint")}</p>
      <p className="mb-4 flex items-center gap-1.5">
        <code className="min-w-0 rounded bg-sunken px-1.5 py-0.5">{url}</code>
        <CopyButton text={url} label={t("connect.copyEndpoint")} iconOnly />
      </p>
      <Tabs
        label={t("connect.clients")}
        tabs={snippets.map((snippet) => ({ value: snippet.client, title: t(`connect.names.${snippet.client}`) }))}
        value={client}
        onChange={setClient}
      >
        {snippets.map((snippet) => (
          <TabPanel key={snippet.client} value={snippet.client}>
            <p className="mb-1.5 text-sm text-soft">
              {t(`connect.hints.${snippet.client}`)} {snippet.file && <code>{snippet.file}</code>}
            </p>
            <div className="flex items-start gap-1.5">
              <pre
                role="region"
                className="code-block min-w-0 flex-1"
                aria-label={t("connect.snippetFor", { client: t(`connect.names.${snippet.client}`) })}
                tabIndex={0}
              >
                {snippet.text}
              </pre>
              <CopyButton
                text={snippet.text}
                label={t("connect.copyFor", { client: t(`connect.names.${snippet.client}`) })}
                iconOnly
              />
            </div>
          </TabPanel>
        ))}
      </Tabs>
      {client !== "connect" && (
        <label className="mt-3 flex gap-2">
          <input
            type="checkbox"
            className="check"
            checked={withToken}
            onChange={(event) => setWithToken(event.target.checked)}
          />
          <span>
            {t("connect.withToken")}
            <span className="block text-sm text-soft">{t("connect.withTokenHint")}</span>
          </span>
        </label>
      )}
    </Card>
  );
}
