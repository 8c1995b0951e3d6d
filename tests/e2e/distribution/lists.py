# SPDX-License-Identifier: Apache-2.0
"""Tags, referrers and the catalogue: what is listed, in which order, and page by page."""
from urllib.parse import quote

from distribution import content
from distribution.registry import Checks, expect, same
from distribution.wire import Wrong

checks = Checks()
check = checks.check

TAGS = ["0", "A", "Z", "_", "a", "a-b", "a.b", "a_b", "aa", "latest", "v1", "v10", "v2"]  # as ASCII orders them
SBOM, SIGNATURE = "application/vnd.example.sbom+json", "application/vnd.example.signature"


def tagged(r, tags):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    for tag in reversed(tags):
        expect(r.put(text, tag), 201)


@check("tags are listed in order")
def _(r):
    tagged(r, TAGS)
    found, answer = r.tags()
    same("the tags", found, TAGS)
    same("Link", answer.header("Link"), None)


@check("page by page, each once")
def _(r):
    tagged(r, TAGS)
    for n in (1, 2, 5, len(TAGS) - 1):
        pages = list(r.pages(f"{r.name}/tags/list?n={n}", "tags"))
        same("all pages", sum(pages, []), TAGS)
        same("the length of each but the last", {len(page) for page in pages[:-1]}, {n})
    for n in (len(TAGS), len(TAGS) + 1, 10000):
        found, answer = r.tags(f"?n={n}")
        same("the tags", found, TAGS)
        same("Link", answer.header("Link"), None)


@check("however many they are")
def _(r):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    tags = sorted(f"v{n}" for n in range(400))
    for at in range(0, len(tags), 15):
        expect(r.put(text, f"{r.digest(text)}?{'&'.join(f'tag={tag}' for tag in tags[at:at + 15])}"), 201)
    for query in ("", "?n=150"):
        same("all tags", sum(r.pages(f"{r.name}/tags/list{query}", "tags"), []), tags)


@check("none at all are a page without a Link")
def _(r):
    tagged(r, TAGS)
    found, answer = r.tags("?n=0")
    same("the tags", found, [])
    same("Link", answer.header("Link"), None)


@check("behind the last, which is not listed itself")
def _(r):
    tagged(r, TAGS)
    for i, tag in enumerate(TAGS):
        same(f"the tags behind {tag}", r.tags(f"?last={tag}")[0], TAGS[i + 1:])
        same(f"two behind {tag}", r.tags(f"?n=2&last={tag}")[0], TAGS[i + 1:i + 3])
    same("the tags behind one that is not there", r.tags("?last=b")[0], ["latest", "v1", "v10", "v2"])
    same("the tags behind all", r.tags("?last=zzz")[0], [])


@check("a page that makes no sense is no reason to break")
def _(r):
    tagged(r, TAGS)
    for query in ("n=-1", "n=x", "n=", "n=99999999999999999999", "n=1.5", "n=0x10", "n=1&n=2", "last=", "last=%00",
                  "last=%2f..%2f", "last=" + "x" * 3000, "%", "last=%zz", "&&&", "n"):
        expect(r.ask("GET", f"{r.name}/tags/list?{query}"), 200, 400)


@check("a repository that is not there has no tags")
def _(r):
    expect(r.ask("GET", f"{r.name}/tags/list"), 404, code="NAME_UNKNOWN")


@check("the catalogue lists repositories in order, page by page")
def _(r):
    mine = sorted(r.fresh() for _ in range(3))
    for name in mine:
        r.image("latest", name=name)
    everything = sum(r.pages("_catalog", "repositories"), [])
    same("the order", everything, sorted(everything))
    same("those of ours", [name for name in everything if name in mine], mine)
    same("two at a time", sum(r.pages("_catalog?n=2", "repositories", 10000), []), everything)
    found = expect(r.ask("GET", f"_catalog?n=1&last={quote(mine[0])}"), 200).json()["repositories"]
    same("behind one", found, everything[everything.index(mine[0]) + 1:][:1])
    same("none at all", expect(r.ask("GET", "_catalog?n=0"), 200).json()["repositories"], [])


def listed(r, subject, query=""):
    """What refers to a subject, by digest, over all pages."""
    found = sum(r.pages(f"{r.name}/referrers/{subject['digest']}{query}", "manifests"), [])
    if len({each["digest"] for each in found}) != len(found):
        raise Wrong("a referrer is listed twice")
    return {each["digest"]: each for each in found}


@check("nothing refers to what is not there, which is no error")
def _(r):
    same("the referrers", r.referrers(r.digest(content.noise()))[0], [])
    r.image("latest")
    same("the referrers", r.referrers(r.digest(content.noise()))[0], [])


@check("a malformed subject is 400")
def _(r):
    r.image("latest")
    for digest in ("x", "sha256:x", f"{r.algorithm}:{'0' * 63}", "latest", "%00"):
        expect(r.ask("GET", f"{r.name}/referrers/{digest}"), 400, 404)
    expect(r.ask("GET", f"{r.name}/referrers/{r.algorithm}:baddigeststring"), 400, code="DIGEST_INVALID")


@check("a put says that its subject was seen")
def _(r):
    image, empty = r.image(), r.empty()
    for subject in (image, content.absent(r.algorithm, content.IMAGE)):
        text = content.text_of(content.image_of(empty, [empty], subject=subject, artifactType=SBOM))
        for reference in (None, "tagged"):
            same("OCI-Subject", expect(r.put(text, reference), 201).header("OCI-Subject"), subject["digest"])
    config, layers = r.parts()
    answer = expect(r.put(content.text_of(content.image_of(config, layers))), 201)
    same("OCI-Subject of one without", answer.header("OCI-Subject"), None)


@check("what refers to a subject is listed as it is")
def _(r):
    subject = r.image("latest")
    notes = {"org.example.note": "é", "org.example.other": ""}
    sbom = r.artifact(subject, SBOM, annotations=notes)
    config, layers = r.parts()
    image = r.store(content.image_of(config, layers, subject=subject))
    typed = r.store(content.index_of([r.image()], subject=subject, artifactType=SIGNATURE, annotations=notes), None, content.INDEX)
    plain = r.store(content.index_of([], subject=subject), None, content.INDEX)
    found = listed(r, subject)
    same("all", set(found), {each["digest"] for each in (sbom, image, typed, plain)})
    for each, kind, said in ((sbom, SBOM, notes), (image, content.CONFIG, None), (typed, SIGNATURE, notes), (plain, None, None)):
        entry = found[each["digest"]]
        same("mediaType and size", (entry["mediaType"], entry["size"]), (each["mediaType"], each["size"]))
        same("artifactType", entry.get("artifactType"), kind)
        same("annotations", entry.get("annotations") or None, said)


@check("whether it came before the subject or after")
def _(r):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    subject = r.descriptor(text, content.IMAGE)
    early = r.artifact(subject, SBOM)
    same("before", set(listed(r, subject)), {early["digest"]})
    r.store(text, "latest")
    late = r.artifact(subject, SIGNATURE)
    same("after", set(listed(r, subject)), {early["digest"], late["digest"]})


@check("and by its type, where that is asked for")
def _(r):
    subject = r.image()
    sbom, signature = r.artifact(subject, SBOM), r.artifact(subject, SIGNATURE)
    for kind, wanted in ((SBOM, {sbom["digest"]}), (SIGNATURE, {signature["digest"]}), ("application/x", set())):
        found, answer = r.referrers(subject["digest"], f"?artifactType={quote(kind, safe='')}")
        same(f"of type {kind}", {each["digest"] for each in found}, wanted)
        same("OCI-Filters-Applied", answer.header("OCI-Filters-Applied"), "artifactType")
    same("OCI-Filters-Applied without a filter", r.referrers(subject["digest"])[1].header("OCI-Filters-Applied"), None)


@check("many of them are all listed")
def _(r):
    subject = r.image()
    empty = r.empty()
    wanted = set()
    for n in range(12):
        text = content.text_of(content.image_of(empty, [empty], subject=subject, artifactType=SBOM,
                                                annotations={"n": str(n), "large": "A" * 400000}))
        expect(r.put(text), 201)
        wanted.add(r.digest(text))
    same("all", set(listed(r, subject)), wanted)
    same("all of a type", set(listed(r, subject, f"?artifactType={quote(SBOM, safe='')}")), wanted)
    _, first = r.referrers(subject["digest"])
    if len(first.body) > 4 << 20:
        raise Wrong(f"a page of {len(first.body)} bytes")


@check("a referrer that is deleted is listed no more")
def _(r):
    subject = r.image()
    gone, stays = r.artifact(subject, SBOM), r.artifact(subject, SIGNATURE)
    expect(r.ask("DELETE", f"{r.name}/manifests/{gone['digest']}"), 202)
    same("those that stay", set(listed(r, subject)), {stays["digest"]})


@check("the rest is, when the subject is deleted")
def _(r):
    subject = r.image()
    sbom = r.artifact(subject, SBOM)
    expect(r.ask("DELETE", f"{r.name}/manifests/{subject['digest']}"), 202)
    same("the referrers", set(listed(r, subject)), {sbom["digest"]})


@check("what refers to it elsewhere is not listed here")
def _(r):
    subject = r.image()
    r.artifact(subject, SBOM)
    r.image(name=r.other)
    same("the referrers there", r.referrers(subject["digest"], name=r.other)[0], [])


@check("what older clients keep under a tag is listed, too")
def _(r):
    subject = r.image()
    algorithm, _, encoded = subject["digest"].partition(":")
    tag = f"{algorithm[:32]}-{encoded[:64]}"
    old = r.store(content.image_of(r.empty(), [r.empty()], artifactType=SIGNATURE, annotations={"old": "1"}))
    entry = {**old, "artifactType": SIGNATURE, "annotations": {"old": "1"}}
    new = r.artifact(subject, SBOM)
    r.store(content.index_of([entry, {**new, "artifactType": SBOM}]), tag, content.INDEX)
    found = listed(r, subject)
    same("both, and each once", set(found), {old["digest"], new["digest"]})
    same("as the tag describes it", found[old["digest"]].get("annotations"), {"old": "1"})
    same("by its type", set(listed(r, subject, f"?artifactType={quote(SIGNATURE, safe='')}")), {old["digest"]})
