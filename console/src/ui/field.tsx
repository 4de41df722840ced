// A label, a control, a hint and an error that belong together, for the eye and for a screen reader.
import { type ReactNode, useId } from "react";
import { useTranslation } from "react-i18next";

/** What a control needs to be tied to its label, hint and error. */
export type FieldProps = {
  id: string;
  "aria-invalid": boolean;
  "aria-errormessage": string | undefined;
  "aria-describedby": string | undefined;
};

type Props = {
  label: string;
  hint?: ReactNode;
  error?: string | null | undefined;
  required?: boolean;
  children: (field: FieldProps) => ReactNode;
  className?: string;
};

export function Field({ label, hint, error, required = false, children, className = "" }: Props) {
  const { t } = useTranslation();
  const id = useId();
  const described = [error ? `${id}-error` : "", hint ? `${id}-hint` : ""].filter(Boolean).join(" ");
  return (
    <div className={className}>
      <div className="mb-1 font-medium">
        <label htmlFor={id}>{label}</label>
        {/* Beside the label and not in it: the star is no part of the field's name. */}
        {required && (
          <span aria-hidden className="ml-0.5 text-bad" title={t("common.required")}>
            *
          </span>
        )}
      </div>
      {children({
        id,
        "aria-invalid": Boolean(error),
        "aria-errormessage": error ? `${id}-error` : undefined,
        "aria-describedby": described || undefined,
      })}
      {error && (
        <p id={`${id}-error`} className="mt-1 text-sm text-bad">
          {error}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} className="mt-1 text-sm text-soft">
          {hint}
        </p>
      )}
    </div>
  );
}
