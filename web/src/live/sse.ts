// Server-sent events out of a stream of bytes. `fetch` and not EventSource, because a browser's
// own reader tells nobody whether it is connected, nor that a number was reset.

export type Frame = { id: string | null; event: string; data: string };

/** Takes text as it comes and gives the whole frames in it; what is unfinished waits. */
export class FrameReader {
  #rest = "";

  take(text: string): Frame[] {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    return blocks.map(frameOf).filter((each) => each !== null);
  }
}

function frameOf(block: string): Frame | null {
  let id: string | null = null;
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") id = value;
    else if (name === "event") event = value;
    else if (name === "data") data.push(value);
  }
  return id === null && data.length === 0 ? null : { id, event, data: data.join("\n") };
}
