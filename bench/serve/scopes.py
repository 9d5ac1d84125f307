# SPDX-License-Identifier: Apache-2.0
"""scopes.py - a scope for each request or step, where SERVE_SCOPES asks for them; else nothing."""

import contextlib
import os
import sys


def opener(name, package):
    """A function that returns what is to be put into a `with`. `package` has ebb in it."""
    if os.environ.get("SERVE_SCOPES") != "1":
        return contextlib.nullcontext
    sys.path.insert(0, package)
    import ebb  # only here: it is not to cost the others anything
    if not ebb.is_scope_served():
        sys.exit("SERVE_SCOPES, but there is no libebb-malloc")
    return lambda: ebb.step(name, scope=True)
