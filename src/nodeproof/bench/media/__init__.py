"""Pictures and videos made from a seed: does an endpoint see those it is shown, all of each, and no others?"""
