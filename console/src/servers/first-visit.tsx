// For who has no server yet: three examples that work, and the two other ways in.
import { Braces, FileText, FolderOpen, Brain, Plus, Sparkles } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { openDialog } from "../ui/dialogs";
import { FIRST_TEMPLATES, templateOf } from "./templates";

const ICONS: Partial<Record<string, ReactNode>> = {
  filesystem: <FolderOpen size={20} aria-hidden />,
  memory: <Brain size={20} aria-hidden />,
  everything: <Sparkles size={20} aria-hidden />,
};

export function FirstVisit() {
  const { t } = useTranslation();
  return (
    <div className="mx-auto max-w-3xl py-8 sm:py-14">
      <h2 className="text-center text-xl font-semibold">{t("first.title")}</h2>
      <p className="mx-auto mt-2 max-w-xl text-center text-soft">{t("first.lead")}</p>
      <h3 className="mt-8 mb-3 text-sm font-medium text-soft">{t("first.pick")}</h3>
      <div className="grid gap-3 sm:grid-cols-3">
        {FIRST_TEMPLATES.map((id) => (
          <Choice
            key={id}
            icon={ICONS[id] ?? <FileText size={20} aria-hidden />}
            title={templateOf(id)?.name ?? id}
            text={t(`templates.${id}`)}
            onClick={() => openDialog({ kind: "add", template: id })}
          />
        ))}
      </div>
      <div className="mt-3 grid gap-3 sm:grid-cols-2">
        <Choice
          icon={<Plus size={20} aria-hidden />}
          title={t("list.add")}
          text={t("first.addHint")}
          onClick={() => openDialog({ kind: "add" })}
        />
        <Choice
          icon={<Braces size={20} aria-hidden />}
          title={t("first.paste")}
          text={t("first.pasteHint")}
          onClick={() => openDialog({ kind: "add", tab: "paste" })}
        />
      </div>
    </div>
  );
}

type ChoiceProps = { icon: ReactNode; title: string; text: string; onClick: () => void };

function Choice({ icon, title, text, onClick }: ChoiceProps) {
  return (
    <button
      type="button"
      onClick={onClick}
      className="card flex items-start gap-3 p-4 text-left transition-colors hover:border-accent-fill hover:bg-hover"
    >
      <span className="mt-0.5 text-accent">{icon}</span>
      <span className="min-w-0">
        <span className="block font-semibold">{title}</span>
        <span className="block text-sm text-soft">{text}</span>
      </span>
    </button>
  );
}
