import type { Wanted } from "../text/graph";
import { placed } from "../text/layout";

self.onmessage = ({ data }: MessageEvent<Wanted>) => self.postMessage(placed(data));
