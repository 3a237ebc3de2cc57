"""The watermark of a subtask with several input channels: the examples of the reference, and general properties."""

from hypothesis import given
from hypothesis import strategies as st

from ekorn.graph.addresses import ChannelId
from ekorn.subtask.epoch_input import InputChannels
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP

ONE, TWO = ChannelId(0, 0), ChannelId(0, 1)


def test_the_watermark_is_the_least_of_all_channels():
    inputs = InputChannels([ONE, TWO])
    assert inputs.advance(ONE, 5) is None
    assert inputs.advance(TWO, 3) == 3
    assert inputs.advance(TWO, 9) == 5
    assert inputs.advance(ONE, 4) is None, "a channel does not go back"


def test_the_reference_s_example_of_idleness():
    inputs = InputChannels([ONE, TWO])
    inputs.advance(ONE, 5)
    inputs.advance(TWO, 3)
    assert inputs.advance(TWO, 9) == 5
    assert inputs.set_idle(TWO, True) is None
    assert inputs.watermark_ms == 5
    assert not inputs.idle
    assert inputs.set_idle(ONE, True) == 9, "all are idle: time goes to the furthest"
    assert inputs.idle


def test_an_idle_channel_holds_nothing_back():
    inputs = InputChannels([ONE, TWO])
    inputs.advance(ONE, 5)
    assert inputs.set_idle(TWO, True) == 5
    assert inputs.advance(ONE, 8) == 8


def test_a_channel_that_comes_back_counts_again_when_it_has_caught_up():
    inputs = InputChannels([ONE, TWO])
    inputs.advance(TWO, 1)
    inputs.advance(ONE, 10)
    assert inputs.set_idle(TWO, True) == 10
    inputs.set_idle(TWO, False)
    assert inputs.advance(TWO, 6) is None
    assert inputs.advance(ONE, 12) == 12, "the one behind is not waited for"
    assert inputs.advance(TWO, 13) is None
    assert inputs.advance(ONE, 20) == 13, "from here on it is"


def test_what_an_idle_channel_says_is_not_heard():
    inputs = InputChannels([ONE, TWO])
    inputs.advance(ONE, 5)
    inputs.set_idle(TWO, True)
    assert inputs.advance(TWO, 100) is None
    assert inputs.watermark_ms == 5


def test_the_end_has_come_when_every_channel_has_ended():
    inputs = InputChannels([ONE, TWO])
    assert not inputs.end(ONE)
    assert not inputs.end(ONE)
    assert inputs.end(TWO)


events = st.lists(
    st.one_of(
        st.tuples(st.just("advance"), st.integers(0, 2), st.integers(0, 30)),
        st.tuples(st.just("idle"), st.integers(0, 2), st.booleans()),
    ),
    max_size=40,
)


@given(events)
def test_time_never_goes_back_and_never_passes_an_active_channel_in_step(script):
    channels = [ChannelId(0, n) for n in range(3)]
    inputs = InputChannels(channels)
    reached, idle, last = dict.fromkeys(channels, MIN_TIMESTAMP), dict.fromkeys(channels, False), MIN_TIMESTAMP
    for kind, number, value in script:
        channel = channels[number]
        if kind == "advance":
            moved = inputs.advance(channel, value)
            if not idle[channel]:
                reached[channel] = max(reached[channel], value)
        else:
            moved = inputs.set_idle(channel, value)
            idle[channel] = value
        if moved is not None:
            assert moved > last
            last = moved
        assert inputs.watermark_ms == last
        assert inputs.idle is all(idle.values())
        assert last <= max(reached.values())


@given(events)
def test_the_last_watermark_of_all_channels_is_everybody_s(script):
    channels = [ChannelId(0, n) for n in range(3)]
    inputs = InputChannels(channels)
    for kind, number, value in script:
        (inputs.advance if kind == "advance" else inputs.set_idle)(channels[number], value)
    for channel in channels:  # as a source does at its end
        inputs.set_idle(channel, False)
        inputs.advance(channel, MAX_TIMESTAMP)
    assert inputs.watermark_ms == MAX_TIMESTAMP
