// The three sorts of MIME types that the filter knows.

export type MimeGroup = "text" | "image" | "other";

const TEXTUAL =
  /^(?:text\/|application\/(?:json|xml|javascript|typescript|yaml|x-yaml|toml|sql|graphql|x-sh|x-ndjson)\b|.*\+(?:json|xml|yaml)$)/i;

/** A resource that does not tell its type is neither text nor image. */
export function groupOf(mimeType: string | undefined): MimeGroup {
  const type = (mimeType ?? "").split(";")[0]!.trim();
  if (/^image\//i.test(type)) return "image";
  return TEXTUAL.test(type) ? "text" : "other";
}
