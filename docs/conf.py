"""How the documentation is built: ``make docs``. Nothing is fetched, neither to build it nor to read it."""

import os
import sys
from pathlib import Path

from cloister._version import __version__

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE)]
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

project = "cloister"
author = "The cloister developers"
version = release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_gallery.gen_gallery", "cloister_docs"]
exclude_patterns = ["_build", "_ext", "gallery", "jupyter_execute", "pictures/*.ipynb", "**/sg_execution_times.rst"]
html_theme = "furo"
html_title = f"cloister {release}"
html_show_sphinx = False
html_show_copyright = False
smartquotes = False  # "--with" is an option, and no dash
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["cloister.css"]
html_js_files = [("versions.js", {"defer": "defer"})]

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_output_stderr = "remove"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
nitpick_ignore_regex = [("py:.*", r"(?!cloister\.).*")]

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["pictures"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "image_scrapers": ("pictures.scraped",),
}
