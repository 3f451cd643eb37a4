// A choice of versions in the margin, where the site stands beside those of others: docs/_ext/versions.py puts it there.
const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href);
const here = root.pathname.split("/").at(-2);

function choice(versions) {
  const select = document.createElement("select");
  select.className = "versions";
  select.ariaLabel = "version";
  select.append(...versions.map((name) => new Option(name, name, false, name === here)));
  select.onchange = () => location.assign(new URL(`../${select.value}/`, root));
  document.querySelector(".sidebar-brand")?.after(select);
}

if (location.protocol.startsWith("http"))
  fetch(new URL("../versions.json", root))
    .then((answer) => (answer.ok ? answer.json() : []))
    .then((versions) => versions.includes(here) && choice(versions))
    .catch(() => {}); // a site that stands alone has no list
