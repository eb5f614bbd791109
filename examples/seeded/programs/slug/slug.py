"""Names of pages."""


def slug(title):
    """The name of the page with this title: small letters, one hyphen between its words."""
    return title.strip().lower().replace(" ", "-")
