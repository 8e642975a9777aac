"""`ferry bundle`: one archive for a vendor's issue tracker, without what is private."""
