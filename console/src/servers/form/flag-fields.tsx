// The two switches of a registration: whether it runs, and whether its resources become tools.
import { useId } from "react";
import { useTranslation } from "react-i18next";
import type { ServerForm } from "./use-server-form";

export function FlagFields({ form }: { form: ServerForm }) {
  const { t } = useTranslation();
  return (
    <div className="space-y-2">
      <Flag
        label={t("form.enabled")}
        hint={t("form.enabledHint")}
        checked={form.draft.enabled}
        onChange={(enabled) => form.change({ enabled })}
      />
      <Flag
        label={t("form.includeResources")}
        hint={t("form.includeResourcesHint")}
        checked={form.draft.includeResources}
        onChange={(includeResources) => form.change({ includeResources })}
      />
    </div>
  );
}

type FlagProps = { label: string; hint?: string; checked: boolean; onChange: (on: boolean) => void };

export function Flag({ label, hint, checked, onChange }: FlagProps) {
  const id = useId();
  return (
    <div className="flex gap-2.5">
      <input
        id={id}
        type="checkbox"
        className="check"
        checked={checked}
        onChange={(event) => onChange(event.target.checked)}
        aria-describedby={hint ? `${id}-hint` : undefined}
      />
      <div>
        <label htmlFor={id} className="font-medium">
          {label}
        </label>
        {hint && (
          <p id={`${id}-hint`} className="text-sm text-soft">
            {hint}
          </p>
        )}
      </div>
    </div>
  );
}
