// Adds a server: by form, from pasted JSON, or from a template that fills the form in.
import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ServerView } from "../../api/schema";
import { Modal } from "../../ui/modal";
import { tellSuccess } from "../../ui/notices";
import { TabPanel, Tabs } from "../../ui/tabs";
import { TEMPLATES, type Template, templateOf } from "../templates";
import { draftOfTemplate, emptyDraft } from "./draft";
import { PasteTab } from "./paste-tab";
import { SaveFoot } from "./save-foot";
import { ServerFormFields } from "./server-form";
import { useServerForm } from "./use-server-form";

type Way = "form" | "paste" | "templates";
type Props = { tab?: Way; template?: string; onClose: () => void };

export default function AddDialog({ tab = "form", template, onClose }: Props) {
  const { t } = useTranslation();
  const [way, setWay] = useState<Way>(tab);
  const [chosen, setChosen] = useState(templateOf(template));
  const formId = useId();
  const use = (next: Template) => {
    setChosen(next);
    setWay("form");
  };
  const tabs = [
    { value: "form", title: t("form.form") },
    { value: "paste", title: t("form.paste") },
    { value: "templates", title: t("form.templates") },
  ];
  return (
    <Modal title={t("form.add")} open onClose={onClose} wide steady>
      <Tabs label={t("form.tabs")} tabs={tabs} value={way} onChange={(next) => setWay(next as Way)}>
        <TabPanel value="form" keep>
          <NewServer key={chosen?.id ?? ""} id={formId} template={chosen} onClose={onClose} />
        </TabPanel>
        <TabPanel value="paste" keep>
          <PasteTab onClose={onClose} />
        </TabPanel>
        <TabPanel value="templates">
          <TemplateList onUse={use} />
        </TabPanel>
      </Tabs>
    </Modal>
  );
}

function NewServer({ id, template, onClose }: { id: string; template: Template | undefined; onClose: () => void }) {
  const { t } = useTranslation();
  const saved = (server: ServerView) => {
    tellSuccess(t("form.added", { name: server.name }));
    onClose();
  };
  const form = useServerForm({
    initial: template ? draftOfTemplate(template) : emptyDraft(),
    edited: null,
    onSaved: saved,
  });
  return (
    <>
      <ServerFormFields form={form} id={id} />
      <SaveFoot form={form} formId={id} onCancel={onClose} />
    </>
  );
}

function TemplateList({ onUse }: { onUse: (template: Template) => void }) {
  const { t } = useTranslation();
  return (
    <>
      <p className="mb-3 text-soft">{t("templates.lead")}</p>
      <ul className="grid gap-2 sm:grid-cols-2">
        {TEMPLATES.map((template) => (
          <li key={template.id} className="flex">
            <button
              type="button"
              className="card flex w-full flex-col p-3 text-left hover:border-accent-fill hover:bg-hover"
              onClick={() => onUse(template)}
            >
              <span className="flex w-full items-center justify-between gap-2">
                <span className="font-semibold">{template.name}</span>
                <span className="tag">{t("templates.needs", { program: template.command })}</span>
              </span>
              <span className="mt-1 block text-sm text-soft">{t(`templates.${template.id}`)}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
