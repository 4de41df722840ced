// A body that arrives in pieces, and can be held open.

export function bodyOf(pieces: string[], open = false): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      for (const piece of pieces) controller.enqueue(encoder.encode(piece));
      if (!open) controller.close();
    },
  });
}
