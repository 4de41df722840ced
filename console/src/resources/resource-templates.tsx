// Resources that exist only once an address is filled in. Asked for on request: many servers that
// have resources do not know templates, and answer with an error.
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Resource, ResourceTemplate } from "../api/mcp";
import { resourceTemplatesQuery } from "../api/queries";
import type { ServerView } from "../api/schema";
import { Field } from "../ui/field";
import { guardComposition } from "../ui/ime";
import { Loading } from "../ui/states";
import { expand, variablesOf } from "./uri-template";

type Props = { server: ServerView; onPreview: (resource: Resource) => void };

export function ResourceTemplates({ server, onPreview }: Props) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const offered = "resources" in ((server.capabilities ?? {}) as object);
  const query = useQuery({ ...resourceTemplatesQuery(server.id), enabled: open });
  if (!offered) return null;
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)} className="card">
      <summary className="px-4 py-2.5 font-semibold">{t("resources.templates")}</summary>
      <div className="border-t border-line">
        {query.isPending && <Loading label={t("app.loading")} />}
        {(query.isError || query.data?.length === 0) && (
          <p className="px-4 py-3 text-soft">{t("resources.noTemplates")}</p>
        )}
        {query.data && query.data.length > 0 && <TemplateList templates={query.data} onPreview={onPreview} />}
      </div>
    </details>
  );
}

function TemplateList({
  templates,
  onPreview,
}: {
  templates: readonly ResourceTemplate[];
  onPreview: (resource: Resource) => void;
}) {
  const { t } = useTranslation();
  return (
    <>
      <p className="px-4 pt-3 text-sm text-soft">{t("resources.templatesHint")}</p>
      <ul className="divide-y divide-line">
        {templates.map((template) => (
          <li key={template.uriTemplate} className="px-4 py-3">
            <TemplateForm template={template} onPreview={onPreview} />
          </li>
        ))}
      </ul>
    </>
  );
}

function TemplateForm({
  template,
  onPreview,
}: {
  template: ResourceTemplate;
  onPreview: (resource: Resource) => void;
}) {
  const { t } = useTranslation();
  const [values, setValues] = useState<Record<string, string>>({});
  const name = template.title ?? template.name ?? template.uriTemplate;
  const read = (event: FormEvent) => {
    event.preventDefault();
    onPreview({
      uri: expand(template.uriTemplate, values),
      name,
      ...(template.mimeType ? { mimeType: template.mimeType } : {}),
    });
  };
  return (
    <form onSubmit={read} onKeyDown={guardComposition} noValidate>
      <p className="font-semibold">{name}</p>
      <code className="text-sm text-soft">{template.uriTemplate}</code>
      {template.description && <p className="text-sm text-soft">{template.description}</p>}
      <div className="mt-2 flex flex-wrap items-end gap-2">
        {variablesOf(template.uriTemplate).map((variable) => (
          <Field key={variable} label={variable}>
            {(field) => (
              <input
                {...field}
                className="input"
                value={values[variable] ?? ""}
                onChange={(event) => setValues({ ...values, [variable]: event.target.value })}
                autoComplete="off"
              />
            )}
          </Field>
        ))}
        <button type="submit" className="btn" aria-label={t("resources.readTemplate", { name })}>
          {t("resources.read")}
        </button>
      </div>
    </form>
  );
}
