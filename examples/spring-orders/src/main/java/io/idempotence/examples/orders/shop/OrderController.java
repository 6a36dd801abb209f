package io.idempotence.examples.orders.shop;

import io.idempotence.examples.orders.network.Fault;
import io.idempotence.examples.orders.network.FaultyNetwork;
import org.springframework.stereotype.Controller;
import org.springframework.ui.Model;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;

/** The pages of the shop. */
@Controller
class OrderController {
    private static final int PRICE_IN_CENTS = 1_250;

    private final OrderBook book;
    private final Checkout checkout;
    private final PaymentsClient payments;
    private final FaultyNetwork network;

    OrderController(OrderBook book, Checkout checkout, PaymentsClient payments, FaultyNetwork network) {
        this.book = book;
        this.checkout = checkout;
        this.payments = payments;
        this.network = network;
    }

    @GetMapping("/")
    String form(Model model) {
        model.addAttribute("orders", book.latest());
        model.addAttribute("faults", Fault.values());
        model.addAttribute("next", network.next());
        return "form";
    }

    /** Two clicks, one order: the form carries an ID, and the starter replays the redirect. */
    @PostMapping("/orders")
    String order(@RequestParam String item) {
        long number = book.add(item, PRICE_IN_CENTS);
        checkout.pay(book.get(number));
        return "redirect:/orders/" + number;
    }

    @GetMapping("/orders/{number}")
    String order(@PathVariable long number, Model model) {
        model.addAttribute("order", book.get(number));
        model.addAttribute("payments", payments.of(number));
        model.addAttribute("requests", network.requests());
        return "order";
    }

    /** Asks again under the same ID. */
    @PostMapping("/orders/{number}/payment")
    String payAgain(@PathVariable long number) {
        checkout.payAgain(book.get(number));
        return "redirect:/orders/" + number;
    }

    @PostMapping("/network")
    String breakNext(@RequestParam Fault fault) {
        network.breakNext(fault);
        return "redirect:/";
    }
}
