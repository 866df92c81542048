// What stands in the address behind its path: a link shows what its sender saw.
import { useSearchParams } from "wouter";

/** Read a name of it, `""` = it is not there; and put one, in place of the address that is shown. */
export function useAddress(): [(name: string) => string, (name: string, value: string) => void, URLSearchParams] {
  const [search, setSearch] = useSearchParams();
  const put = (name: string, value: string) => {
    const next = (before: URLSearchParams) => (value === "" ? before.delete(name) : before.set(name, value), before);
    setSearch(next, { replace: true });
  };
  return [(name) => search.get(name) ?? "", put, search];
}
