// Reads a resource and shows it; what is too large or not to be shown can be downloaded.
import { useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Resource, ResourceContents } from "../api/mcp";
import { call } from "../api/queries";
import type { ServerView } from "../api/schema";
import { ResourceView } from "../tools/content-view";
import { FailureAlert } from "../ui/alert";
import { CopyButton } from "../ui/copy-button";
import { download, fromBase64 } from "../ui/download";
import { Modal } from "../ui/modal";
import { Loading } from "../ui/states";

type Props = { server: ServerView; resource: Resource; onClose: () => void };

export default function PreviewDialog({ server, resource, onClose }: Props) {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ["resource", server.id, resource.uri],
    queryFn: ({ signal }) =>
      call<{ contents?: ResourceContents[] }>(server.id, "resources/read", { uri: resource.uri }, signal),
    staleTime: 0,
    gcTime: 0,
    retry: false,
    refetchOnWindowFocus: false,
  });
  const contents = query.data?.contents ?? [];
  return (
    <Modal title={resource.title ?? resource.name ?? resource.uri} open onClose={onClose} shape="side">
      <div className="space-y-4">
        <p className="flex items-center gap-2">
          <code className="min-w-0 text-soft">{resource.uri}</code>
          <CopyButton text={resource.uri} iconOnly />
        </p>
        {query.isError && (
          <FailureAlert title={t("resources.readFailed")} failure={query.error} retry={() => void query.refetch()} />
        )}
        {query.isPending && <Loading label={t("resources.reading")} />}
        {query.data && contents.length === 0 && <p className="text-soft">{t("resources.empty")}</p>}
        {contents.map((part, index) => (
          // The same address may come in parts.
          <Part key={index} part={part} type={resource.mimeType} />
        ))}
      </div>
    </Modal>
  );
}

function Part({ part, type }: { part: ResourceContents; type: string | undefined }) {
  const { t } = useTranslation();
  const mimeType = part.mimeType ?? type;
  const name = part.uri.split("/").at(-1) || "resource";
  const save = () =>
    part.blob === undefined
      ? download(name, part.text ?? "", mimeType)
      : download(name, fromBase64(part.blob), mimeType);
  return (
    <div className="space-y-2">
      <div className="flex items-center justify-between gap-2">
        <span className="tag">{mimeType ?? t("resources.noType")}</span>
        <button type="button" className="btn btn-small" onClick={save}>
          <Download size={14} aria-hidden />
          {t("common.download")}
        </button>
      </div>
      <ResourceView contents={{ ...part, ...(mimeType ? { mimeType } : {}) }} />
    </div>
  );
}
