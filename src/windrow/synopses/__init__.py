"""Synopses: what is kept of the panes of a share group, and how windows are answered from it."""

from windrow.synopses.groups import Groups
from windrow.synopses.lookup import Lookup
from windrow.synopses.registry import SYNOPSES, synopsis
from windrow.synopses.share_group import ShareGroup
from windrow.synopses.spec import ComponentSpec
from windrow.synopses.synopsis import Synopsis

__all__ = ["SYNOPSES", "ComponentSpec", "Groups", "Lookup", "ShareGroup", "Synopsis", "synopsis"]
