// One resource: its name, address, type and description.
import { Eye } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Resource } from "../api/mcp";
import { bytes } from "../ui/format";

export function ResourceItem({ resource, onPreview }: { resource: Resource; onPreview: () => void }) {
  const { t } = useTranslation();
  const name = resource.title ?? resource.name ?? resource.uri;
  return (
    <div className="flex flex-wrap items-start justify-between gap-x-4 gap-y-2 px-4 py-2.5">
      <div className="min-w-0 flex-1 basis-64">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="font-semibold">{name}</span>
          {resource.mimeType && <span className="tag">{resource.mimeType}</span>}
          {resource.size !== undefined && <span className="text-sm text-soft">{bytes(resource.size)}</span>}
        </p>
        <code className="text-sm text-soft">{resource.uri}</code>
        {resource.description && <p className="line-clamp-2 text-sm text-soft">{resource.description}</p>}
      </div>
      <button type="button" className="btn btn-small" aria-label={t("resources.preview", { name })} onClick={onPreview}>
        <Eye size={14} aria-hidden />
        {t("resources.open")}
      </button>
    </div>
  );
}
